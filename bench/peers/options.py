"""The arguments of `run`, and the folders it uses."""

import argparse
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENGINES = ("coscan", "coscan-no-results", "coscan-running", "duckdb", "chdb", "datafusion")
CASES = ("streams-cached", "streams-own-constants", "streams-distinct", "streams-slow-device", "dashboard", "tpch",
         "open-loop", "small", "alone")
STAGGER_S = 0.03

DESCRIPTION = """\
Measures coscan beside DuckDB, chDB (ClickHouse in a process) and DataFusion's Python package: the same Parquet files,
the same queries, the same limit of memory, in turn on this machine. Compares all answers. Writes a
page with the results.

engines:
  coscan               as it is by default: queries share reads, decoding, and results, which are kept
  coscan-no-results    coscan.share_results = false: reads and decoded columns only; what queries get that all differ
  coscan-running       coscan.share_results = running: results of queries that run at the same time
  duckdb, chdb, datafusion

cases:
  streams-cached         16 streams of 4 scans of lineitem, files in the page cache; filters are the same, ranges of
                         keys differ
  streams-own-constants  the same, a query in twenty with constants of its own
  streams-distinct       the same, no two queries with a filter or an expression in common: no result can be shared
  streams-slow-device    streams-cached from a device of 200 MB/s, little memory for files (needs root: a control
                         group)
  dashboard              14 aggregations at once over 31 files, refreshed after each of 9 more; on the slow device, if
                         there is one
  tpch                   the 22 queries of TPC-H in 1, 4 and 16 streams, parameters at random
  open-loop              scans that arrive at random, at 0.25 to 4 times the rate that DuckDB sustains
  small                  512 small queries from 16 clients
  alone                  four queries of TPC-H, one at a time, parameters at random

Each load, number of streams and round has processes of its own, and coscan is warmed up without shared results: nobody
profits from what the benchmark itself repeats.
"""

EPILOG = """\
What it needs: Linux, Python 3.11 or newer with venv, PyPI (about 350 MB, once), and Rust, unless --coscan names a
binary. What it leaves: a Python environment (1.1 GB) and the tables (0.5 GB at scale 1), in the user's cache folder.
How long it takes: about half an hour at scale 1 with 3 rounds on two cores, without the build. Nothing else should run
on the machine: the page states how much else did. The exit code is 1 if answers differ or a query fails.

examples:
  bench/peers/run                                        everything, at scale 1
  bench/peers/run --quick --scale 0.05 --page try.md     two minutes: does it work here?
  bench/peers/run --cases streams-cached,alone --engines duckdb --json results.json --page try.md
  bench/peers/run --cases dashboard --engines coscan-no-results,duckdb --page try.md
  bench/peers/run --report-only results.json             write the page again from results
"""


def list_of(known: tuple[str, ...]):
    """A parser of names separated by commas, in the order of `known`."""
    def parse(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",") if name.strip()]
        unknown = [name for name in names if name not in known]
        if unknown or not names:
            raise argparse.ArgumentTypeError(f"{text!r}: give some of {', '.join(known)}")
        return [name for name in known if name in names]
    return parse


def bytes_of(text: str) -> int:
    """`12GB`, `512MB` or a number of bytes."""
    units = {"KB": 10**3, "MB": 10**6, "GB": 10**9}
    number, unit = (text[:-2], units[text[-2:].upper()]) if text[-2:].upper() in units else (text, 1)
    try:
        count = int(float(number) * unit)
    except ValueError:
        count = 0
    if count <= 0:
        raise argparse.ArgumentTypeError(f"{text!r}: give bytes, such as 8GB or 512MB")
    return count


def above_zero(kind):
    """A number of this kind above zero."""
    def parse(text: str):
        try:
            number = kind(text)
        except ValueError:
            number = 0
        if not number > 0:
            raise argparse.ArgumentTypeError(f"{text!r}: give a number above 0")
        return number
    return parse


def seconds_of(text: str) -> float:
    """A number of seconds, also 0."""
    return 0.0 if text == "0" else above_zero(float)(text)


def cache() -> Path:
    """The user's cache folder of coscan."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "coscan"


def half_of_memory() -> int:
    """Half of the machine's memory, in bytes: coscan's default, too."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def shown(path: Path) -> str:
    """A path as it is told to the user: within the repository, relative to it."""
    return str(path.resolve().relative_to(ROOT)) if path.resolve().is_relative_to(ROOT) else str(path)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench/peers/run", description=DESCRIPTION, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--coscan", metavar="PATH", type=Path, help="the binary `coscan` [default: `cargo build --release` makes it]")
    add("--scale", metavar="N", type=above_zero(float), default=1.0,
        help="TPC-H scale factor: 1 is six million rows of lineitem [default: 1]")
    add("--rounds", metavar="N", type=above_zero(int), default=3,
        help="runs of each case on each engine; a third of them for tpch, at least one [default: 3]")
    add("--cases", metavar="NAMES", type=list_of(CASES), default=list(CASES), help="cases to run [default: all]")
    add("--engines", metavar="NAMES", type=list_of(ENGINES), default=list(ENGINES),
        help=f"engines beside coscan, which always runs [default: {','.join(ENGINES)}]")
    add("--quick", action="store_true", help="one round of fewer queries: to see that everything works, not to measure")
    add("--memory", metavar="BYTES", type=bytes_of, default=half_of_memory(),
        help="limit of memory of each engine [default: half of the machine's]")
    add("--bandwidth", metavar="BYTES", type=bytes_of, default=200 * 10**6,
        help="bytes per second of the slow device [default: 200MB]")
    add("--stagger", metavar="SECONDS", type=seconds_of, default=STAGGER_S,
        help="seconds between the starts of two streams of scans, times the scale; 0 starts all at once "
             f"[default: {STAGGER_S:g}, a tenth of the longest scan, as in `coscan bench streams`]")
    add("--seed", metavar="N", type=int, default=7, help="the seed of queries, orders and arrivals [default: 7]")
    add("--data", metavar="DIRECTORY", type=Path, default=cache() / "data", help="where tables are kept")
    add("--page", metavar="FILE", type=Path, default=ROOT / "docs/peers.md", help="the page [default: docs/peers.md]")
    add("--json", metavar="FILE", type=Path, help="also write all results, written anew after each case")
    add("--report-only", metavar="FILE.json", type=Path, help="measure nothing: write the page from these results")
    chosen = parser.parse_args(arguments)
    if "coscan" not in chosen.engines:
        chosen.engines.insert(0, "coscan")
    if chosen.quick:
        chosen.rounds = 1
    return chosen


def command(chosen: argparse.Namespace) -> str:
    """The command that repeats a run, without paths of this machine."""
    words = ["bench/peers/run", f"--scale {chosen.scale:g}", f"--rounds {chosen.rounds}"]
    if chosen.cases != list(CASES):
        words.append(f"--cases {','.join(chosen.cases)}")
    if chosen.engines != list(ENGINES):
        words.append(f"--engines {','.join(chosen.engines)}")
    words += ["--quick"] if chosen.quick else []
    words += [f"--memory {chosen.memory}"] if chosen.memory != half_of_memory() else []
    words += [f"--bandwidth {chosen.bandwidth}"] if chosen.bandwidth != 200 * 10**6 else []
    words += [f"--stagger {chosen.stagger:g}"] if chosen.stagger != STAGGER_S else []
    words += [f"--seed {chosen.seed}"] if chosen.seed != 7 else []
    return " ".join(words)
