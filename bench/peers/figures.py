"""The figures of each case: numbers of runs, medians over rounds, factors beside coscan's."""

import itertools
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

from cases import LOADS, TIMES_ALONE, phase_of_load

PATIENCE = 5
"""Waiting is fine while the 95th percentile of latency is within so many times the mean time alone."""


@dataclass
class Figure:
    """One row of a table."""
    case: str
    label: str
    unit: str
    summary: bool = False
    """Whether it is in the first table of the page: times only, where lower is better."""
    values: dict[str, list[float]] = field(default_factory=dict)
    """The value of each round, by engine; none where the engine failed."""

    def median(self, engine: str) -> float | None:
        return statistics.median(self.values[engine]) if self.values.get(engine) else None

    def factor(self, engine: str, base: str = "coscan") -> float | None:
        """The median relative to coscan's, or to that of another engine."""
        own, other = self.median(engine), self.median(base)
        return own / other if own is not None and other else None

    def overlaps(self, engine: str, base: str = "coscan") -> bool:
        """Whether some round of coscan's was as good as one of the engine's, or the other way round."""
        own, other = self.values[engine], self.values[base]
        return min(own) <= max(other) and min(other) <= max(own)


class Phase:
    """What one run of a phase tells."""

    def __init__(self, phase: dict, queries: list[str]):
        self.used = phase["used"]
        self.failed = any(error for stream in phase["streams"] for *_, error in stream)
        self.streams = [[(queries[query], begin, end, cpu_s) for query, begin, end, cpu_s, _ in stream]
                        for stream in phase["streams"]]
        self.latencies = sorted(end - begin for stream in self.streams for _, begin, end, _ in stream)

    def total_s(self) -> float:
        return max(end for stream in self.streams for _, _, end, _ in stream)

    def stream_s(self) -> float:
        """The average time of a stream."""
        return statistics.mean(stream[-1][2] - stream[0][1] for stream in self.streams)

    def median_ms(self) -> float:
        return statistics.median(self.latencies) * 1000

    def mean_ms(self) -> float:
        return statistics.mean(self.latencies) * 1000

    def p95_ms(self) -> float:
        return self.latencies[math.ceil(0.95 * len(self.latencies)) - 1] * 1000

    def rate(self) -> float:
        return len(self.latencies) / self.total_s()

    def query_ms(self, name: str) -> float:
        """The median time of a query."""
        return statistics.median(end - begin for stream in self.streams for query, begin, end, _ in stream
                                 if query == name) * 1000

    def query_mean_ms(self, name: str) -> float:
        """The mean time of a query."""
        return statistics.mean(end - begin for stream in self.streams for query, begin, end, _ in stream
                               if query == name) * 1000

    def query_cpu_ms(self, name: str) -> float:
        """The median processor time of a query, in a phase of one stream."""
        return statistics.median(cpu_s for stream in self.streams for query, _, _, cpu_s in stream
                                 if query == name) * 1000

    def cpu_s(self) -> float:
        return self.used["cpu_s"]

    def peak_mb(self) -> float:
        return self.used["peak_bytes"] / 1e6

    def device_mb(self) -> float:
        return self.used["device_bytes"] / 1e6

    def call_mb(self) -> float:
        return self.used["call_bytes"] / 1e6


TOTAL = ("total time", "s", Phase.total_s, True)
STREAM = ("average stream time", "s", Phase.stream_s, True)
STREAM_BESIDE_TOTAL = (*STREAM[:3], False)
MEDIAN = ("median latency", "ms", Phase.median_ms, True)
MEAN = ("mean latency", "ms", Phase.mean_ms, False)
P95 = ("95th percentile of latency", "ms", Phase.p95_ms, True)
RATE = ("queries per second", "1/s", Phase.rate, False)
CPU = ("processor time", "s", Phase.cpu_s, False)
PEAK = ("peak memory", "MB", Phase.peak_mb, False)
DEVICE = ("read from the device", "MB", Phase.device_mb, False)
CALLS = ("read by read calls", "MB", Phase.call_mb, False)
REFRESH = ("time until all panels are there", "s", Phase.total_s, True)

FIGURES = {
    "streams-cached": (STREAM, TOTAL, CPU, CALLS, PEAK),
    "streams-own-constants": (STREAM, TOTAL, CPU, CALLS, PEAK),
    "streams-distinct": (STREAM, TOTAL, CPU, CALLS, PEAK),
    "streams-slow-device": (STREAM, TOTAL, CPU, DEVICE, CALLS, PEAK),
    "dashboard": (REFRESH, CPU, DEVICE, CALLS, PEAK),
    "tpch": (TOTAL, STREAM_BESIDE_TOTAL, CPU, PEAK),
    "open-loop": (MEDIAN, MEAN, P95, CPU, PEAK),
    "small": (RATE, MEDIAN, P95, CPU, PEAK),
    "alone": (CPU, PEAK),
}

Rounds = dict[str, list[list[Phase]]]
"""The rounds of each engine: in each, the phases of one name."""


def rounds_of(results: dict, case: str, name: str) -> Rounds:
    """The phases of this name: only of engines that never failed in one."""
    measured = results["cases"][case]
    found, failed = {engine: [] for engine in results["options"]["engines"]}, set()
    for run in measured["runs"]:
        phases = [Phase(phase, measured["queries"]) for phase in run["phases"] if phase["name"] == name]
        found[run["engine"]].append(phases)
        if not phases or any(phase.failed for phase in phases):
            failed.add(run["engine"])
    return {engine: [] if engine in failed else rounds for engine, rounds in found.items()}


def values_of(rounds: Rounds, value: Callable[[Phase], float]) -> dict[str, list[float]]:
    """The value of each round: the median of its phases, of which most cases have one."""
    return {engine: [statistics.median(map(value, phases)) for phases in own] for engine, own in rounds.items()}


def figures(results: dict, case: str) -> list[Figure]:
    """The rows of a case, phase after phase."""
    measured, rows = results["cases"][case], []
    for name in measured["phases"]:
        rounds = rounds_of(results, case, name)
        prefix = f"{name}, " if len(measured["phases"]) > 1 else ""
        if case == "alone":
            rows += alone_figures(results, case, name)
        one_stream = all(len(phase.streams) == 1 for own in rounds.values() for phases in own for phase in phases)
        for label, unit, value, summary in (MEAN,) if name == TIMES_ALONE else FIGURES[case]:
            if one_stream and label == STREAM[0]:
                continue  # It is the total time.
            rows.append(Figure(case, prefix + label, unit, summary, values_of(rounds, value)))
    return rows + ([highest_rate(results, case)] if case == "open-loop" else [])


def names_of(results: dict, case: str, rounds: Rounds) -> list[str]:
    """The queries of a phase, each once."""
    ran = next((own[0][0] for own in rounds.values() if own), None)
    names = {name for stream in ran.streams for name, *_ in stream} if ran else set()
    return [name for name in dict.fromkeys(results["cases"][case]["queries"]) if name in names]


def alone_figures(results: dict, case: str, phase: str) -> list[Figure]:
    """The median time and processor time of each query in a phase of one stream."""
    rounds, rows = rounds_of(results, case, phase), []
    for name in names_of(results, case, rounds):
        rows.append(Figure(case, name, "ms", True, values_of(rounds, lambda one: one.query_ms(name))))
        values = values_of(rounds, lambda one: one.query_cpu_ms(name))
        rows.append(Figure(case, f"{name}, processor time", "ms", False, values))
    return rows


def query_figures(results: dict, case: str, phase: str) -> list[Figure]:
    """The mean time of each query in a phase."""
    rounds = rounds_of(results, case, phase)
    return [Figure(case, name, "ms", False, values_of(rounds, lambda one: one.query_mean_ms(name)))
            for name in names_of(results, case, rounds)]


def highest_rate(results: dict, case: str) -> Figure:
    """The highest of the loads, as a rate, up to which nobody waits too long; 0 if there is none."""
    measured = results["cases"][case]
    loads = [load for load in LOADS if phase_of_load(load) in measured["phases"]]
    alone = rounds_of(results, case, TIMES_ALONE)
    loaded = [rounds_of(results, case, phase_of_load(load)) for load in loads]

    def rate(time_alone: Phase, phases: list[Phase]) -> float:
        fine = itertools.takewhile(lambda pair: pair[1].p95_ms() <= PATIENCE * time_alone.mean_ms(),
                                   zip(loads, phases))
        return max((load for load, _ in fine), default=0.0) * measured["rate"]

    values = {engine: [rate(first[0], [phases[0] for phases in others])
                       for first, *others in zip(alone[engine], *(rounds[engine] for rounds in loaded))]
              for engine in alone}
    return Figure(case, f"highest rate with a 95th percentile within {PATIENCE} × the mean time alone", "1/s", False,
                  values)


def other_load(results: dict, case: str) -> tuple[float, float]:
    """The share of the processors that other processes took during a case: on average, and in the worst run."""
    used = [phase["used"] for run in results["cases"][case]["runs"] for phase in run["phases"]]
    cores = results["machine"]["cores"]
    shares = [one["other_cpu_s"] / (one["wall_s"] * cores) for one in used]
    wall_s = sum(one["wall_s"] for one in used)
    average = sum(one["other_cpu_s"] for one in used) / (wall_s * cores) if used else 0.0
    return average, max(shares, default=0.0)
