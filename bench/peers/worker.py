"""A process that runs one case on one engine: reads a job as JSON from standard input, writes what it measured.

A job has `queries` (name and SQL), `warmup` (positions of queries to run before anything is measured) and `phases`,
each with `streams`: lists of [due, position]. A stream runs its queries one after another; a query with a due time,
in seconds from the start of the phase, does not start before, and its latency counts from then. Others count from
their start. Before a phase, files of the job's `months` arrive until so many are there as the phase says.
`worker.py facts FILE` prints what only the installed packages know.
"""

import json
import os
import sys
import threading
import time

import resources
from answers import difference, normalized
from engines import ENGINES, Setup

START_DELAY_S = 0.05  # All threads have started by then.


class Answers:
    """The first answer to each query; later ones must be the same."""

    def __init__(self):
        self.first: dict[int, list[list]] = {}
        self.differences: list[str] = []

    def add(self, position: int, name: str, rows: list[tuple]) -> None:
        answer = normalized(rows)
        first = self.first.setdefault(position, answer)
        if found := difference(answer, first):
            self.differences.append(f"{name}: two runs differ: {found}")


def arrive(months: list[list[str]], count: int) -> None:
    """Links so many files, of [source, target], into the folder of a table, unless they are there."""
    for source, target in months[:count]:
        if not os.path.exists(target):
            os.makedirs(os.path.dirname(target))
            os.link(source, target)


def run_stream(engine, client, stream, queries, phase_start: float, done: list) -> None:
    """Runs the queries of a stream; appends a record and the result of each to `done`."""
    for due, position in stream:
        started = time.monotonic()
        counted_from = started
        if due is not None:
            counted_from = phase_start + due
            time.sleep(max(0.0, counted_from - started))
        record = {"query": position, "result": None, "error": None}
        cpu_before_s = resources.cpu_s(engine.pids)
        try:
            record["result"] = client(queries[position]["sql"])
        except Exception as error:  # An engine may refuse a query; the page says so, and the others go on.
            record["error"] = f"{type(error).__name__}: {error}"[:400]
        record |= {"from_s": counted_from - phase_start, "end_s": time.monotonic() - phase_start,
                   "cpu_s": resources.cpu_s(engine.pids) - cpu_before_s}
        done.append(record)


def run_phase(engine, clients, phase, queries, answers: Answers) -> dict:
    """Runs all streams at the same time; returns times, resources and errors."""
    streams = phase["streams"]
    done = [[] for _ in streams]
    resources.reset_peak(engine.pids)
    before, busy_before, measured_from = resources.use_of(engine.pids), resources.machine_busy_s(), time.monotonic()
    phase_start = time.monotonic() + START_DELAY_S
    threads = [threading.Thread(target=run_stream, args=(engine, client, stream, queries, phase_start, records))
               for client, stream, records in zip(clients, streams, done)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    used = resources.use_of(engine.pids).since(before)
    used["wall_s"] = round(time.monotonic() - measured_from, 3)
    used["other_cpu_s"] = round(max(0.0, resources.machine_busy_s() - busy_before - used["cpu_s"]), 3)
    used["peak_bytes"] = resources.peak_bytes(engine.pids)
    for record in (record for records in done for record in records):
        if record["error"] is None:
            name = queries[record["query"]]["name"]
            answers.add(record["query"], name, engine.rows(record["result"]))
    # What the engine used during a query is what the query used, if no other ran.
    one = len(streams) == 1
    lists = [[[r["query"], round(r["from_s"], 6), round(r["end_s"], 6), round(r["cpu_s"], 6) if one else None,
               r["error"]] for r in records] for records in done]
    return {"name": phase["name"], "used": used, "streams": lists}


def run(job: dict) -> dict:
    if job["cgroup_procs"]:
        # Before the engine exists, so that all of its threads and processes are limited, too.
        with open(job["cgroup_procs"], "w") as file:
            file.write(str(os.getpid()))
    queries, answers, clients, phases = job["queries"], Answers(), [], []
    arrive(job["months"], job["phases"][0]["months"])
    engine = ENGINES[job["engine"]](Setup(**job["setup"]))
    try:
        warm_up(engine, [queries[position]["sql"] for position in job["warmup"]])
        for phase in job["phases"]:
            arrive(job["months"], phase["months"])
            connect = engine.client_alone if phase["alone"] else engine.client
            clients += [connect() for _ in phase["streams"][len(clients):]]
            phases.append(run_phase(engine, clients, phase, queries, answers))
        return {"phases": phases, "answers": answers.first, "differences": answers.differences}
    finally:
        engine.close()


def warm_up(engine, statements: list[str]) -> None:
    client = engine.client_alone()
    for sql in statements:
        try:
            client(sql)
        except Exception:  # Whatever fails here fails in a phase, too, which reports it.
            pass


def facts(lineitem: str) -> dict:
    """Versions, and the range of keys of lineitem."""
    from importlib.metadata import version

    import chdb
    import pyarrow.parquet
    packages = ("duckdb", "chdb", "datafusion", "psycopg", "pyarrow")
    parquet = pyarrow.parquet.ParquetFile(lineitem).metadata
    groups = [parquet.row_group(index).column(0).statistics for index in range(parquet.num_row_groups)]
    clickhouse = str(chdb.connect(":memory:").query("SELECT version()")).strip().strip('"')
    return {"versions": {name: version(name) for name in packages} | {"clickhouse": clickhouse},
            "keys": [min(group.min for group in groups), max(group.max for group in groups)]}


if __name__ == "__main__":
    if sys.argv[1:2] == ["facts"]:
        print(json.dumps(facts(sys.argv[2])))
    else:
        job = json.load(sys.stdin)
        result = run(job)
        with open(job["result_file"], "w") as file:
            json.dump(result, file)
        # Engines in the process may take long to tear down what the process is about to lose anyway.
        sys.stdout.flush()
        os._exit(0)
