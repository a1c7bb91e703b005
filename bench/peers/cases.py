"""The cases: which queries run when. Pure: the same arguments give the same plan on every machine."""

import math
from dataclasses import dataclass, field

import queries
from queries import Query, Random

STREAMS = 16
QUERIES_PER_STREAM = 4
STREAM_COUNTS = (1, 4, 16)
LOADS = (0.5, 0.8, 1.0, 1.5)
ALONE = (1, 6, 3, 18)
SMALL_CLIENTS = 16
SMALL_QUERIES = 512

# Seconds between the starts of two streams for each unit of scale: a tenth of the longest scan, as in `bench streams`.
STAGGER_S = 0.03


@dataclass(frozen=True)
class Settings:
    """What plans depend on."""
    scale: float
    seed: int
    quick: bool
    keys: tuple[int, int]
    """The smallest and the largest l_orderkey."""
    rate: float = 0.0
    """Queries per second that DuckDB sustains in a closed loop, for `open-loop`."""


@dataclass
class Plan:
    """What a worker runs; the fields are those of its job."""
    queries: list[Query] = field(default_factory=list)
    warmup: list[int] = field(default_factory=list)
    phases: list[dict] = field(default_factory=list)
    _positions: dict[Query, int] = field(default_factory=dict)

    def position(self, query: Query) -> int:
        """The place of a query in the list, to which it is added if it is new."""
        if query not in self._positions:
            self._positions[query] = len(self.queries)
            self.queries.append(query)
        return self._positions[query]

    def warm(self, warmup: list[Query]) -> None:
        self.warmup += [self.position(query) for query in warmup]

    def phase(self, name: str, streams: list[list[Query]], starts: list[float]) -> None:
        """Streams of queries; each stream begins at its time and runs its queries one after another."""
        self.phases.append({"name": name, "streams": [
            [[start if index == 0 else None, self.position(query)] for index, query in enumerate(stream)]
            for stream, start in zip(streams, starts)]})

    def job(self) -> dict:
        listed = [{"name": query.name, "sql": query.sql} for query in self.queries]
        return {"queries": listed, "warmup": self.warmup, "phases": self.phases}


def scan_streams(settings: Settings) -> list[list[Query]]:
    """16 streams of 4 scans."""
    random = Random(settings.seed)
    return [[queries.scan(random, settings.keys) for _ in range(QUERIES_PER_STREAM)] for _ in range(STREAMS)]


def streams_cached(settings: Settings) -> Plan:
    plan = streams_slow_device(settings)
    plan.warm(queries.warm_scans(settings.keys))
    return plan


def streams_slow_device(settings: Settings) -> Plan:
    """No warm-up: everything comes from the device."""
    plan = Plan()
    plan.phase("streams", scan_streams(settings), [STAGGER_S * settings.scale * index for index in range(STREAMS)])
    return plan


def tpch(settings: Settings) -> Plan:
    plan = Plan()
    all_queries = [queries.tpch(number, settings.scale) for number in range(1, 23)]
    plan.warm(all_queries)
    for count in STREAM_COUNTS[:2] if settings.quick else STREAM_COUNTS:
        # Stream k has the same order in all phases.
        orders = [Random(settings.seed + index).shuffled(all_queries) for index in range(count)]
        plan.phase(phase_of_streams(count), orders, [0.0] * count)
    return plan


def open_loop(settings: Settings) -> Plan:
    plan = Plan()
    plan.warm(queries.warm_scans(settings.keys))
    scans = [query for stream in scan_streams(settings) for query in stream]
    for load in LOADS[1::2] if settings.quick else LOADS:
        random = Random(settings.seed)
        arrivals, now = [], 0.0
        for _ in scans:
            arrivals.append(now)
            now -= math.log(random.unit()) / (load * settings.rate)
        plan.phase(phase_of_load(load), [[query] for query in random.shuffled(scans)], arrivals)
    return plan


def small(settings: Settings) -> Plan:
    random = Random(settings.seed)
    each = SMALL_QUERIES // SMALL_CLIENTS // (4 if settings.quick else 1)
    streams = [[queries.small(random, settings.scale) for _ in range(each)] for _ in range(SMALL_CLIENTS)]
    plan = Plan()
    plan.warm(list({query.name: query for stream in streams for query in stream}.values()))
    plan.phase("small", streams, [0.0] * SMALL_CLIENTS)
    return plan


def alone(settings: Settings) -> Plan:
    plan = Plan()
    stream = [queries.tpch(number, settings.scale) for number in ALONE]
    plan.warm(stream)
    plan.phase("alone", [stream * (1 if settings.quick else 3)], [0.0])
    return plan


def phase_of_streams(count: int) -> str:
    return f"{count} stream" if count == 1 else f"{count} streams"


def phase_of_load(load: float) -> str:
    return f"load {load:g}"


PLANS = {
    "streams-cached": streams_cached, "streams-slow-device": streams_slow_device, "tpch": tpch,
    "open-loop": open_loop, "small": small, "alone": alone,
}
