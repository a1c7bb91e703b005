"""An engine in a process of its own: reads lines of panels from standard input, and writes what they took and gave.

`engine.py NAME PORT`; each line is `once` (one after another) or `together`.
"""

import json
import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

from panels import PANELS
from slow_s3 import BUCKET

URL = f"s3://{BUCKET}/trips/trips.parquet"
Rows = list[tuple]


def coscan(endpoint: str) -> Callable[[str], Rows]:
    import coscan

    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"}
    os.environ.update(keys, AWS_ENDPOINT=endpoint, AWS_ALLOW_HTTP="true")
    session = coscan.Session(memory=2 << 30)
    session.register("trips", URL)
    return lambda sql: session.sql(sql).fetchall()


def datafusion(endpoint: str) -> Callable[[str], Rows]:
    from datafusion import SessionContext
    from datafusion.object_store import AmazonS3

    context = SessionContext()
    store = AmazonS3(BUCKET, region="us-east-1", access_key_id="a", secret_access_key="b", endpoint=endpoint, allow_http=True)
    context.register_object_store("s3://", store, BUCKET)
    context.register_parquet("trips", URL)
    return lambda sql: [tuple(row.values()) for batch in context.sql(sql).collect() for row in batch.to_pylist()]


def duckdb(endpoint: str) -> Callable[[str], Rows]:
    import duckdb
    import duckdb_extension_httpfs

    connection = duckdb.connect()
    folder = Path(duckdb_extension_httpfs.__file__).parent / "extensions" / f"v{duckdb.__version__}"
    connection.execute(f"LOAD '{folder / 'httpfs.duckdb_extension'}'")
    host = endpoint.removeprefix("http://")
    connection.execute(
        f"CREATE SECRET (TYPE s3, KEY_ID 'a', SECRET 'b', ENDPOINT '{host}', USE_SSL false, URL_STYLE 'path', REGION 'us-east-1')"
    )
    # Both are as its documentation advises: files are cached in memory, and footers, too.
    connection.execute("SET enable_external_file_cache = true; SET parquet_metadata_cache = true")
    connection.execute(f"CREATE VIEW trips AS SELECT * FROM '{URL}'")
    return lambda sql: connection.cursor().execute(sql).fetchall()


def polars(endpoint: str) -> Callable[[str], Rows]:
    import polars

    options = {"aws_endpoint_url": endpoint, "aws_access_key_id": "a", "aws_secret_access_key": "b", "aws_region": "us-east-1", "aws_allow_http": "true"}

    def run(sql: str) -> Rows:
        context = polars.SQLContext(trips=polars.scan_parquet(URL, storage_options=options))
        return context.execute(sql).collect(engine="streaming").rows()

    return run


ENGINES = {"coscan": coscan, "datafusion": datafusion, "duckdb": duckdb, "polars": polars}


def rounded(row: tuple) -> list:
    """A row that is equal for all engines: they add floating-point numbers in another order."""
    return [f"{value:.6g}" if isinstance(value, float | Decimal) else value for value in row]


def refresh(run: Callable[[str], Rows], together: bool) -> dict:
    """Runs all panels. Returns the seconds, the processor seconds and the answers."""
    answers: dict[str, list] = {}

    def panel(name: str) -> None:
        answers[name] = [rounded(row) for row in run(PANELS[name])]

    started, used = time.monotonic(), _processor_s()
    if together:
        threads = [threading.Thread(target=panel, args=(name,)) for name in PANELS]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    else:
        for name in PANELS:
            panel(name)
    return {"seconds": time.monotonic() - started, "processor": _processor_s() - used, "answers": answers}


def _processor_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    name, port = sys.argv[1:]
    run = ENGINES[name](f"http://127.0.0.1:{port}")
    for line in sys.stdin:
        print(json.dumps(refresh(run, line.strip() == "together")), flush=True)


if __name__ == "__main__":
    main()
