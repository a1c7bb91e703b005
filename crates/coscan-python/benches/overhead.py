#!/usr/bin/env python3
"""What Python costs: the installed package beside the command line that it contains, on the same queries.

Sixteen threads with four queries each (TPC-H 1 and 6 on 1, 10, 50 and 100 % of lineitem) beside sixteen scripts of `coscan sql --jobs 16`,
each in a process of its own, in pairs. Then the rows of a query as a pyarrow.Table beside the same rows collected in Rust.
Prints medians of the pairs' ratios, the least and the greatest. Needs pyarrow, and a Parquet file of lineitem.
"""

import argparse
import gc
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time

STREAMS = 16
MEMORY = 2 << 30
PERCENTS = (1, 10, 50, 100)
Q1 = """SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), sum(l_extendedprice * (1 - l_discount)), avg(l_quantity), count(*)
FROM lineitem WHERE l_orderkey BETWEEN {first} AND {last} GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus"""
Q6 = """SELECT sum(l_extendedprice * l_discount) FROM lineitem
WHERE l_orderkey BETWEEN {first} AND {last} AND l_discount BETWEEN {discount} AND {discount} + 0.02 AND l_quantity < 24"""


def streams(keys: int) -> list[list[str]]:
    """The queries of each stream, on ranges of keys that are spread over the table."""
    all_streams = []
    for stream in range(STREAMS):
        queries = []
        for number, percent in enumerate(PERCENTS):
            length = keys * percent // 100
            first = (keys - length) * (stream * 7 % STREAMS) // STREAMS
            text = Q1 if (stream + number) % 2 else Q6
            queries.append(text.format(first=first, last=first + length, discount=f"0.0{stream % 8}"))
        all_streams.append(queries[stream % 4 :] + queries[: stream % 4])
    return all_streams


def in_threads(file: str, keys: int) -> None:
    import coscan

    session = coscan.Session(memory=MEMORY)
    session.register("lineitem", file)

    def stream(queries: list[str]) -> None:
        for query in queries:
            session.sql(query).fetchall()

    threads = [threading.Thread(target=stream, args=(queries,)) for queries in streams(keys)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def measured(*command: str) -> tuple[float, float]:
    """The time and the processor time of a process, in seconds."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def say(name: str, ratios: list[float]) -> None:
    print(f"{name}: {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})", flush=True)


def compare_streams(file: str, keys: int, pairs: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        scripts = []
        for number, queries in enumerate(streams(keys)):
            script = os.path.join(folder, f"{number}.sql")
            with open(script, "w") as out:
                out.write(";\n".join(queries) + ";\n")
            scripts += ["-f", script]
        command = [sys.executable, "-m", "coscan", "sql", "--memory", str(MEMORY), "--table", f"lineitem={file}", "--jobs", str(STREAMS)]
        here = [sys.executable, __file__, "--in-threads", str(keys), file]
        measured(*command, *scripts)  # Warms the page cache.
        times = []
        for _ in range(pairs):
            rust, python = measured(*command, *scripts), measured(*here)
            times.append((python[0] / rust[0], python[1] / rust[1]))
            print(f"  {rust[0]:.2f} s and {rust[1]:.2f} processor-seconds in Rust, {python[0]:.2f} and {python[1]:.2f} in Python", flush=True)
    say("threads in Python to the command line, time", [time for time, _ in times])
    say("threads in Python to the command line, processor time", [processor for _, processor in times])


def compare_rows(pairs: int) -> None:
    import coscan

    session = coscan.Session(memory=4 << 30)
    query = "SELECT value AS a, value * 2.5 AS b, 'row ' || value AS c FROM range(0, 10000000)"
    ratios = []
    for _ in range(pairs + 1):
        results = session.sql(query), session.sql(query)
        started = time.monotonic()
        results[0].collect()
        collected = time.monotonic()
        del results
        gc.collect()
        result = session.sql(query)
        begun = time.monotonic()
        rows = result.arrow()
        ended = time.monotonic()
        assert rows.num_rows == 10_000_000
        ratios.append((ended - begun) / (collected - started))
        del rows, result
        gc.collect()
    say("10 million rows as a pyarrow.Table to rows collected in Rust, time", ratios[1:])
    print(f"bytes of operators and results afterwards: {session._native.operator_memory}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="lineitem")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--in-threads", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.in_threads:
        return in_threads(options.file, options.in_threads)
    import coscan

    (keys,) = coscan.sql(f"SELECT max(l_orderkey) FROM '{options.file}'").fetchone()
    compare_streams(options.file, keys, options.pairs)
    compare_rows(options.pairs)


if __name__ == "__main__":
    main()
