"""What each case is for, and how it is run."""

import cases
import dashboard
from figures import PATIENCE
from words import number

PURPOSES = {
    "streams-cached": "Many scans of one table at the same time, with nothing to wait for but processors: what sharing "
                      "of decoding and of results is worth. All queries of a kind have the same filters, as in the "
                      "papers on cooperative scans, and as panels of a dashboard do.",
    "streams-own-constants": "The same scans, of which a few have constants of their own, as when most people look at "
                             "the same figures and some ask something else.",
    "streams-distinct": "The same scans, no two of which have a filter or an expression in common: nothing of the "
                        "results can be shared, only reads and decoding.",
    "streams-slow-device": "The scans of `streams-cached` where the device is slow and memory holds a part of the "
                           "data: what sharing of reads is worth.",
    "dashboard": "Panels of a dashboard, all at once, refreshed each time that a file has arrived: what is worth "
                 "keeping from one refresh to the next.",
    "tpch": "Queries with joins, one after another and side by side: what happens as more users come.",
    "open-loop": "Queries that arrive whether or not earlier ones have ended, as in a service: how long users wait.",
    "small": "Lookups and small aggregates, for which there is little to share: what a server and its scheduler cost.",
    "alone": "One query at a time, each time with other parameters: no results can be shared, how fast the engine "
             "itself is.",
}


def how(results: dict, case: str) -> str:
    """How a case is run, with this session's numbers."""
    content = results["cases"][case]
    match case:
        case "streams-cached":
            return f"{streams(results)} Read calls are served by the page cache."
        case "streams-own-constants":
            return (f"The queries of `streams-cached`, each with constants of its own with a probability of "
                    f"{cases.OWN_PERCENT} %: {content['own_constants']} of {count(content)} have, chosen as in "
                    "`streams-distinct`.")
        case "streams-distinct":
            return ("The queries of `streams-cached` over the same ranges of keys, each with constants of its own that "
                    "select about as many rows: dates, the quantity, and whole numbers in the place of the 1 in "
                    "`1 - l_discount` and `1 + l_tax`. `l_discount` has eleven values, too few for 64 different ranges: "
                    "where Q6 says `l_discount`, these say `(l_discount + 25.00)` and so on, in the filter and in the product.")
        case "streams-slow-device":
            return f"{streams(results)} {slow_device(results, case)}"
        case "dashboard":
            return dashboard_words(results)
        case "tpch":
            return ("The 22 queries, in an order of its own for each stream. Each stream of each number of streams has "
                    "parameters of its own, drawn from the ranges of the specification. "
                    f"{rounds(content['rounds']).capitalize()}: this case takes the longest.")
        case "open-loop":
            return (f"The {count(content)} queries of `streams-cached`, with the same filters, over other ranges of "
                    "keys for each load, each from a client of its own, at random times (Poisson arrivals, the same "
                    f"for all engines). Load 1 is {number(content['rate'])} queries per second: what DuckDB sustained "
                    "in `streams-cached`. Latency counts from the arrival, waiting included. "
                    f"*{cases.TIMES_ALONE.capitalize()}*, one client asks all, and no query takes results of others. "
                    "The last row is the highest of the measured loads up to which 95 % of the latencies are within "
                    f"{PATIENCE} times that mean, which is each engine's own; 0 means at none of them.")
        case "small":
            return (f"{count(content)} queries from 16 clients, one after another each: a row of `customer` by its "
                    "key; groups of 1,000 customers; an aggregate of 1,000 parts, and of the supplies of 100 parts; "
                    "all at random places.")
        case "alone":
            times = "once" if results["options"]["quick"] else f"{number_word(cases.REPETITIONS)} times in turn"
            return (f"Each query runs {times} with parameters at random, the same for all engines; the median counts. "
                    "Below the time of each query is the processor time that it took.")
    raise ValueError(case)


def count(content: dict) -> int:
    """The number of queries in a phase of a case."""
    return sum(map(len, next((run["phases"][0]["streams"] for run in content["runs"] if run["phases"]), [])))


def rounds(count: int) -> str:
    return "one round" if count == 1 else f"{count} rounds"


def streams(results: dict) -> str:
    options = results["options"]
    return ("16 streams of 4 queries, each stream's one after another: TPC-H Q6 or Q1 over 1, 10, 50 or 100 % of "
            f"`lineitem`, drawn with seed {options['seed']} as `coscan bench streams` draws them. "
            + starts(options["stagger"] * options["scale"]))


def starts(apart: float) -> str:
    """When streams start, so many seconds apart."""
    if apart == 0:
        return "All streams start at once."
    return (f"Streams start {number(apart * 1000)} ms apart, the last after {number(apart * (cases.STREAMS - 1))} s: no total "
            "time is lower.")


def slow_device(results: dict, case: str) -> str:
    options = results["options"]
    pool = number(options["slow_pool_bytes"] / 1e6)
    interval = options["slow_pool_bytes"] / options["bandwidth"] * 1000
    return (f"A control group ({results['cases'][case]['limiter']}) lets each engine read "
            f"{number(options['bandwidth'] / 1e6)} MB/s. Nothing is read before. To stand for data larger than memory, "
            f"coscan's pool is {pool} MB, and the page cache, which serves the others, is emptied of the table every "
            f"{number(interval)} ms, in which the device delivers {pool} MB. "
            "Decoded columns, which coscan shares and keeps beyond its pool, are in its peak memory; they save "
            "decoding, not reading.")


def dashboard_words(results: dict) -> str:
    content = results["cases"]["dashboard"]
    months, refreshes = dashboard.MONTHS, max(len(run["phases"]) for run in content["runs"])
    device = slow_device(results, "dashboard") if "limiter" in content else (
        "Files are in the page cache, since reads cannot be limited on this machine for all engines alike "
        f"({content['unlimited']}).")
    return (f"{len(dashboard.PANELS)} different aggregations of `{dashboard.TABLE}`, each from a client of its own, "
            f"all at once. The table is a folder, partitioned as Hive does: the rows of `lineitem` of "
            f"{dashboard.MONTHS_AT_FIRST} months from {months[0]} on, a file each; {number(content['bytes'] / 1e6)} MB "
            f"are in all {len(months)} files. There are {refreshes} refreshes, and before each but the first the file "
            "of another month arrives; the answers show that each engine has seen it: coscan with `SET coscan.refresh_interval = "
            "'0s'`, DataFusion without its cache of lists of files, DuckDB and chDB by views over `**/*.parquet`. "
            "Rows of later refreshes are medians of these. Two panels share no results: one has many groups, one "
            f"counts distinct parts. {device}")


def number_word(number: int) -> str:
    return {2: "two", 3: "three"}.get(number, str(number))
