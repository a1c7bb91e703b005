"""The page docs/peers.md, made of the results of a session."""

import cases
from comparisons import NO_RESULTS, lowest_sentence, rivals, what_results_give, where_others_win
from descriptions import PURPOSES, how, rounds
from figures import Figure, figures, other_load, query_figures
from words import TITLES, number, percent, several, summary_table, table, wrapped

FAILURES_SHOWN = 20

def page(results: dict) -> str:
    """The page as Markdown."""
    engines = results["options"]["engines"]
    measured = [case for case in results["cases"] if "runs" in results["cases"][case]]
    rows = {case: figures(results, case) for case in measured}
    times = [figure for case in measured for figure in rows[case] if figure.summary]
    by_streams = queries_by_streams(results) if "tpch" in measured else {}
    lines = ["# coscan beside other engines", "", *introduction(results), "", "## Summary", "",
             *summary(results, times), ""]
    if NO_RESULTS in engines:
        lines += ["## What shared results give", "", *what_results_give(times), ""]
    for case, content in results["cases"].items():
        lines += [f"## {case}", "", wrapped(PURPOSES[case]), ""]
        if "runs" not in content:
            lines += [wrapped("Left out: reads cannot be limited on this machine for all engines alike "
                              f"({content['unlimited']})."), ""]
            continue
        lines += [wrapped(how(results, case)), "", *case_tables(results, case, rows[case], by_streams), ""]
    others = [figure for case in measured for figure in rows[case] if not figure.summary]
    lines += ["## Where others win", "", *where_others_win(times, others, by_streams, engines), "",
              "## What is not compared", "", *not_compared(engines), "", "## Machine and versions", "",
              *machine(results)]
    return "\n".join(lines) + "\n"


def listed(items: list[str]) -> list[str]:
    return [wrapped(f"- {item}", "  ") for item in items]


def introduction(results: dict) -> list[str]:
    options = results["options"]
    engines, scale = options["engines"], options["scale"]
    how_run = {
        "coscan": "**coscan**: `coscan serve` as it is by default, a connection of the PostgreSQL protocol (psycopg) "
                  "for each client. Queries share reads, decoding and the results of chunks of equal aggregations, "
                  "with queries that run at the same time and with earlier ones. Its processor time and memory are "
                  "those of the server and of the client process together.",
        "coscan-no-results": "**coscan-no-results**: the same with `SET coscan.share_results = false`: queries share "
                             "reads and decoded columns, also those that earlier queries left while memory is free, "
                             "but no results.",
        "coscan-running": "**coscan-running**: the same with `SET coscan.share_results = running`: results, too, but "
                          "only of queries that run at the same time.",
        "duckdb": "**DuckDB**: one database in memory in the client's process, views over `read_parquet`, a cursor for "
                  "each client, `parquet_metadata_cache` on.",
        "chdb": "**chDB**: ClickHouse in the client's process, tables of the engine `File(Parquet)`, a connection for "
                "each client. Files are read with `pread`, not mapped; NULLs are those of SQL.",
        "datafusion": "**DataFusion**: Apache DataFusion's Python package, one session for all clients, "
                      "`sql(…).collect()`.",
    }
    why = ("coscan lets queries share reads and decoding, and the results of aggregations that they have in common. "
           "This page shows where that pays beside other engines, and where it does not.")
    text = (f"Each engine runs the same queries on the same Parquet files on one machine: TPC-H at scale {scale:g}, "
            f"{number(sum(results['bytes'].values()) / 1e6)} MB, made by coscan (row groups of 131,072 rows, "
            "Snappy). All may use all "
            f"{results['machine']['cores']} cores and {number(options['memory_bytes'] / 1e9)} GB of memory. Other "
            "settings are defaults. Each client is a thread of its own. Engines take turns, round after round.")
    medians = f"medians of {rounds(options['rounds'])}" if options["rounds"] > 1 else "from one round"
    lines = [wrapped(why), "", wrapped(text), "", *listed([how_run[engine] for engine in engines]), "", wrapped(
        "Start-up is not measured. Except on the slow device, files are in the page cache, and each engine has run "
        "each kind of query once (coscan then has the data in its own pool, and some of it decoded). A time ends when the client has the whole "
        f"result. Numbers are {medians}; in parentheses is the factor to coscan's."), "", wrapped(
        "No engine gains results from repetitions that the benchmark itself makes: each load, each number of streams and "
        "each round runs in a process of its own, which starts without results; coscan's warm-up keeps none; and a query "
        "that is repeated has other parameters, but for the panels of a dashboard. Caches of data stay from the warm-up "
        "on. What shared results gain here is what the "
        "queries of one case have in common."), "",
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


def summary(results: dict, times: list[Figure]) -> list[str]:
    engines = results["options"]["engines"]
    compared = ["coscan", *rivals(engines)]
    text = ("Time as a factor of coscan's: lower is better, above 1 is slower than coscan. The lowest of each row is "
            "bold, coscan's variants aside: " + lowest_sentence(times, compared))
    if NO_RESULTS in engines:
        text += " With coscan-no-results in coscan's place: " + lowest_sentence(times, [NO_RESULTS, *compared[1:]])
    return [wrapped(text), "", *summary_table(times, engines, compared)]


def queries_by_streams(results: dict) -> dict[str, list[Figure]]:
    """The queries of TPC-H in the phases with one stream and with the most streams."""
    phases = results["cases"]["tpch"]["phases"]
    return {phase: query_figures(results, "tpch", phase) for phase in (phases[0], phases[-1])}


def case_tables(results: dict, case: str, rows: list[Figure], by_streams: dict[str, list[Figure]]) -> list[str]:
    engines = results["options"]["engines"]
    lines = table(rows, engines)
    spread = spread_sentence(rows, engines)
    average, worst = other_load(results, case)
    lines += ["", wrapped(f"{spread} Other processes took {percent(average)} of the processors on average, "
                          f"{percent(worst)} in the worst run.")]
    for streams, queries in by_streams.items() if case == "tpch" else ():
        mean = ", mean time" if streams != cases.phase_of_streams(1) else ""
        lines += ["", f"Each query in {streams}{mean}:", "", *table(queries, engines)]
        if mean:
            lines += ["", wrapped("All latencies together are the number of streams times the average stream time, so an "
                                  "engine that lets some queries pass makes others wait.")]
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
    ]
    if "chdb" in engines:
        items.append("ClickHouse's cache of whole results (`use_query_cache`), which is off by default.")
    if "duckdb" in engines:
        items.append("DuckDB's cache of local files (`cache_local_files`), which is off by default.")
    items.append("This is not a result of TPC-H: its rules for updates, streams and audits are not followed." +
                 (" chDB's Q8 divides by a float, since its quotients of decimals have too few digits." if "chdb" in
                  engines else ""))
    return listed(items)


def machine(results: dict) -> list[str]:
    found, versions = results["machine"], results["versions"]
    names = {"coscan": f"coscan {versions['coscan']}", "duckdb": f"DuckDB {versions['duckdb']}",
             "chdb": f"chDB {versions['chdb']} (ClickHouse {versions['clickhouse']})",
             "datafusion": f"DataFusion for Python {versions['datafusion']}"}
    used = [names[engine] for engine in results["options"]["engines"] if engine in names]
    return listed([
        f"{found['cpu']}, {found['cores']} cores, {number(found['memory_bytes'] / 1e9)} GB of memory, a disk that is "
        f"{found['disk']}, {found['kernel']}. Load before the first run: {found['load_before']:.2f}.",
        f"{several([*used, 'psycopg ' + versions['psycopg'], 'Python ' + found['python']])}.",
        f"Measured on {results['date']}. Memory is resident memory, the peak of the process during a phase; processor "
        "time and bytes are those of the kernel's accounts of the process.",
    ])
