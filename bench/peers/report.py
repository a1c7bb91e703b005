"""The page docs/peers.md, made of the results of a session."""

import cases
from figures import Figure, figures, other_load, query_figures
from words import (TITLES, lowest_sentence, number, percent, several, summary_table, table, where_others_win,
                   wrapped)

FAILURES_SHOWN = 20

PURPOSES = {
    "streams-cached": "Many scans of one table at the same time, with nothing to wait for but processors: what sharing "
                      "of decoding is worth.",
    "streams-slow-device": "The same scans where the device is slow and memory holds a part of the data: what sharing "
                           "of reads is worth.",
    "tpch": "Queries with joins, one after another and side by side: what happens as more users come.",
    "open-loop": "Queries that arrive whether or not earlier ones have ended, as in a service: how long users wait.",
    "small": "Lookups and small aggregates, for which there is little to share: what a server and its scheduler cost.",
    "alone": "One query at a time, where nothing can be shared: how fast the engine itself is.",
}


def page(results: dict) -> str:
    """The page as Markdown."""
    engines = results["options"]["engines"]
    measured = [case for case in results["cases"] if "runs" in results["cases"][case]]
    rows = {case: figures(results, case) for case in measured}
    times = [figure for case in measured for figure in rows[case] if figure.summary]
    one_stream = query_figures(results, "tpch", cases.phase_of_streams(1)) if "tpch" in measured else []
    lines = ["# coscan beside other engines", "", *introduction(results), "", "## Summary", "",
             *summary(results, times), ""]
    for case, content in results["cases"].items():
        lines += [f"## {case}", "", wrapped(PURPOSES[case]), ""]
        if "left_out" in content:
            lines += [wrapped("Left out: reads cannot be limited on this machine for all engines alike "
                              f"({content['left_out']})."), ""]
            continue
        lines += [wrapped(how(results, case)), "", *case_tables(results, case, rows[case], one_stream), ""]
    others = [figure for case in measured for figure in rows[case] if not figure.summary]
    lines += ["## Where others win", "", *where_others_win(times, others, one_stream, engines), "",
              "## What is not compared", "", *not_compared(engines), "", "## Machine and versions", "",
              *machine(results)]
    return "\n".join(lines) + "\n"


def listed(items: list[str]) -> list[str]:
    return [wrapped(f"- {item}", "  ") for item in items]


def introduction(results: dict) -> list[str]:
    options = results["options"]
    engines, scale = options["engines"], options["scale"]
    how_run = {
        "coscan": "**coscan**: `coscan serve`, a connection of the PostgreSQL protocol (psycopg) for each client. Its "
                  "processor time and memory are those of the server and of the client process together. It shares "
                  "reads and decoding, but no results (`SET coscan.share_results = off`), since rounds repeat queries.",
        "duckdb": "**DuckDB**: one database in memory in the client's process, views over `read_parquet`, a cursor for "
                  "each client, `parquet_metadata_cache` on.",
        "chdb": "**chDB**: ClickHouse in the client's process, tables of the engine `File(Parquet)`, a connection for "
                "each client. Files are read with `pread`, not mapped; NULLs are those of SQL.",
        "datafusion": "**DataFusion**: Apache DataFusion's Python package, one session for all clients, "
                      "`sql(…).collect()`.",
    }
    why = ("coscan lets queries that run at the same time share reads and decoding. This page shows where that pays "
           "beside other engines, and where it does not.")
    text = (f"Each engine runs the same queries on the same Parquet files on one machine: TPC-H at scale {scale:g}, "
            f"{number(sum(results['bytes'].values()) / 1e6)} MB, made by coscan (row groups of 131,072 rows, "
            "Snappy). All may use all "
            f"{results['machine']['cores']} cores and {number(options['memory_bytes'] / 1e9)} GB of memory. Other "
            "settings are defaults. Each client is a thread of its own. Each run is a process of its own; engines take "
            "turns, round after round.")
    medians = f"medians of {rounds(options['rounds'])}" if options["rounds"] > 1 else "from one round"
    lines = [wrapped(why), "", wrapped(text), "", *listed([how_run[engine] for engine in engines]), "", wrapped(
        "Start-up is not measured. Except on the slow device, files are in the page cache, and each engine has run "
        "each kind of query once (coscan then has the data in its own pool). A time ends when the client has the whole "
        f"result. Numbers are {medians}; in parentheses is the factor to coscan's."), "",
        "Repeat it with:", "", "```sh", results["command"], "```", ""]
    if options["quick"]:
        lines += ["**This was a quick run, to see that everything works. It measures little.**", ""]
    compared = sum(case.get("answers_compared", 0) for case in results["cases"].values())
    failures = [failure for case in results["cases"].values() for failure in case["failures"]]
    if failures:
        shown = failures[:FAILURES_SHOWN]
        more = f", of which {len(shown)} are shown" if len(shown) < len(failures) else ""
        lines += [f"**{len(failures)} failures** (answers that differ, or queries that failed{more}):", "",
                  *listed(shown)]
    else:
        lines.append(wrapped(
            f"All answers are equal, up to rounding of floats: {compared:,} comparisons between engines, and every "
            "repetition of a query with its first answer."))
    return lines


def rounds(count: int) -> str:
    return "one round" if count == 1 else f"{count} rounds"


def summary(results: dict, times: list[Figure]) -> list[str]:
    engines = results["options"]["engines"]
    return [wrapped("Time as a factor of coscan's: lower is better, above 1 is slower than coscan. The lowest of each "
                    "row is bold. " + lowest_sentence(times, engines)), "", *summary_table(times, engines)]


def how(results: dict, case: str) -> str:
    """How a case is run, with this session's numbers."""
    options, content = results["options"], results["cases"][case]
    count = sum(map(len, next((run["phases"][0]["streams"] for run in content["runs"] if run.get("phases")), [])))
    pool = number(options["slow_pool_bytes"] / 1e6)
    streams = ("16 streams of 4 queries, each stream's one after another: TPC-H Q6 or Q1 over 1, 10, 50 or 100 % of "
               f"`lineitem`, drawn with seed {options['seed']} as `coscan bench streams` draws them. Streams start "
               f"{number(cases.STAGGER_S * options['scale'] * 1000)} ms apart.")
    interval = options["slow_pool_bytes"] / options["bandwidth"] * 1000
    return {
        "streams-cached": streams + " Read calls are served by the page cache.",
        "streams-slow-device": (
            f"{streams} A control group ({content.get('limiter')}) lets each engine read "
            f"{number(options['bandwidth'] / 1e6)} MB/s. Nothing is read before. To stand for data larger than memory, "
            f"coscan's pool is {pool} MB, and the page cache, which serves the others, is emptied of the table every "
            f"{number(interval)} ms, in which the device delivers {pool} MB. "
            "Decoded columns, which coscan shares, are in its peak memory."),
        "tpch": (f"The 22 queries with the parameters of the validation run, in an order of its own for each stream. "
                 f"{rounds(content['rounds']).capitalize()}: this case takes the longest."),
        "open-loop": (
            f"The {count} queries of `streams-cached`, each from a client of its own, at random times (Poisson "
            f"arrivals, the same for all engines). Load 1 is {number(content.get('rate'))} queries per second: what "
            "DuckDB sustained in `streams-cached`. Latency counts from the arrival, waiting included."),
        "small": (f"{count} queries from 16 clients, one after another each: a row of `customer` by its key; groups of "
                  "1,000 customers; an aggregate of 1,000 parts, and of the supplies of 100 parts; all at random "
                  "places."),
        "alone": "Each query runs three times in turn with the others; the median counts." if not options["quick"]
                 else "Each query runs once.",
    }[case]


def case_tables(results: dict, case: str, rows: list[Figure], one_stream: list[Figure]) -> list[str]:
    engines = results["options"]["engines"]
    lines = table(rows, engines)
    spread = spread_sentence(rows, engines)
    average, worst = other_load(results, case)
    lines += ["", wrapped(f"{spread} Other processes took {percent(average)} of the processors on average, "
                          f"{percent(worst)} in the worst run.")]
    if case == "tpch" and one_stream:
        lines += ["", "Each query in one stream:", "", *table(one_stream, engines)]
    return lines


def spread_sentence(rows: list[Figure], engines: list[str]) -> str:
    """The largest distance between two rounds, of each engine's times."""
    spreads = []
    for engine in engines:
        ratios = [max(values) / min(values) - 1 for figure in rows if figure.summary
                  and len(values := figure.values.get(engine) or []) > 1 and min(values) > 0]
        if ratios:
            spreads.append(f"{TITLES[engine]} {percent(max(ratios))}")
    return f"Slowest round above the fastest, in the worst row of times: {', '.join(spreads)}." if spreads else ""


def not_compared(engines: list[str]) -> list[str]:
    items = [
        "Tables in an engine's own format, into which DuckDB and ClickHouse can load the data first.",
        "Servers of ClickHouse or DuckDB, and results sent over a network: coscan's clients pay for a protocol here, "
        "the others' do not.",
        "Large results, writing, object stores, several machines, and memory too small for joins.",
        "Shared or cached results, which none of the engines uses here.",
    ]
    if "duckdb" in engines:
        items.append("DuckDB's cache of local files (`cache_local_files`), which is off by default.")
    items.append("This is not a result of TPC-H: its rules for parameters, updates and audits are not followed." +
                 (" chDB's Q8 divides by a float, since its quotients of decimals have too few digits." if "chdb" in
                  engines else ""))
    return listed(items)


def machine(results: dict) -> list[str]:
    found, versions = results["machine"], results["versions"]
    names = {"coscan": f"coscan {versions['coscan']}", "duckdb": f"DuckDB {versions['duckdb']}",
             "chdb": f"chDB {versions['chdb']} (ClickHouse {versions['clickhouse']})",
             "datafusion": f"DataFusion for Python {versions['datafusion']}"}
    used = [names[engine] for engine in results["options"]["engines"]]
    return listed([
        f"{found['cpu']}, {found['cores']} cores, {number(found['memory_bytes'] / 1e9)} GB of memory, a disk that is "
        f"{found['disk']}, {found['kernel']}. Load before the first run: {found['load_before']:.2f}.",
        f"{several([*used, 'psycopg ' + versions['psycopg'], 'Python ' + found['python']])}.",
        f"Measured on {results['date']}. Memory is resident memory, the peak of the process during a phase; processor "
        "time and bytes are those of the kernel's accounts of the process.",
    ])
