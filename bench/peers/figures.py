"""The figures of each case: numbers of runs, medians over rounds, factors beside coscan's."""

import math
import statistics
from dataclasses import dataclass, field


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

    def factor(self, engine: str) -> float | None:
        """The median relative to coscan's."""
        own, base = self.median(engine), self.median("coscan")
        return own / base if own is not None and base else None

    def overlaps(self, engine: str) -> bool:
        """Whether some round of coscan's was as good as one of the engine's, or the other way round."""
        own, base = self.values[engine], self.values["coscan"]
        return min(own) <= max(base) and min(base) <= max(own)


class Phase:
    """What one run of a phase tells."""

    def __init__(self, phase: dict, queries: list[str]):
        self.used = phase["used"]
        self.failed = any(error for stream in phase["streams"] for *_, error in stream)
        self.streams = [[(queries[query], begin, end) for query, begin, end, _ in stream]
                        for stream in phase["streams"]]
        self.latencies = sorted(end - begin for stream in self.streams for _, begin, end in stream)

    def total_s(self) -> float:
        return max(end for stream in self.streams for _, _, end in stream)

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
        return statistics.median(end - begin for stream in self.streams for query, begin, end in stream
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
HIGHER_IS_BETTER = (RATE[0],)

FIGURES = {
    "streams-cached": (STREAM, TOTAL, CPU, CALLS, PEAK),
    "streams-slow-device": (STREAM, TOTAL, CPU, DEVICE, CALLS, PEAK),
    "tpch": (TOTAL, STREAM_BESIDE_TOTAL, CPU, PEAK),
    "open-loop": (MEDIAN, MEAN, P95, CPU, PEAK),
    "small": (RATE, MEDIAN, P95, CPU, PEAK),
    "alone": (CPU, PEAK),
}


def phases_of(results: dict, case: str, name: str) -> dict[str, list[Phase]]:
    """The runs of a phase by engine: only of engines that never failed in it."""
    measured = results["cases"][case]
    found = {engine: [] for engine in results["options"]["engines"]}
    failed = set()
    for run in measured["runs"]:
        phases = [Phase(phase, measured["queries"]) for phase in run.get("phases", []) if phase["name"] == name]
        if not phases or phases[0].failed:
            failed.add(run["engine"])
        else:
            found[run["engine"]].append(phases[0])
    return {engine: [] if engine in failed else phases for engine, phases in found.items()}


def figures(results: dict, case: str) -> list[Figure]:
    """The rows of a case, phase after phase."""
    measured, rows = results["cases"][case], []
    for name in measured["phases"]:
        runs = phases_of(results, case, name)
        prefix = f"{name}, " if len(measured["phases"]) > 1 else ""
        if case == "alone":
            rows += query_figures(results, case, name, summary=True)
        one_stream = all(len(phase.streams) == 1 for phases in runs.values() for phase in phases)
        for label, unit, value, summary in FIGURES[case]:
            if one_stream and label == STREAM[0]:
                continue  # It is the total time.
            values = {engine: [value(phase) for phase in phases] for engine, phases in runs.items()}
            rows.append(Figure(case, prefix + label, unit, summary, values))
    return rows


def query_figures(results: dict, case: str, phase: str, summary: bool = False) -> list[Figure]:
    """The time of each query in a phase."""
    runs = phases_of(results, case, phase)
    ran = next((phases[0] for phases in runs.values() if phases), None)
    names = {name for stream in ran.streams for name, *_ in stream} if ran else set()
    ordered = [name for name in results["cases"][case]["queries"] if name in names]
    return [Figure(case, name, "ms", summary,
                   {engine: [one.query_ms(name) for one in phases] for engine, phases in runs.items()})
            for name in ordered]


def other_load(results: dict, case: str) -> tuple[float, float]:
    """The share of the processors that other processes took during a case: on average, and in the worst run."""
    used = [phase["used"] for run in results["cases"][case]["runs"] for phase in run.get("phases", [])]
    cores = results["machine"]["cores"]
    shares = [one["other_cpu_s"] / (one["wall_s"] * cores) for one in used]
    wall_s = sum(one["wall_s"] for one in used)
    average = sum(one["other_cpu_s"] for one in used) / (wall_s * cores) if used else 0.0
    return average, max(shares, default=0.0)
