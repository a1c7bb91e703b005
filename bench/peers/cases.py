"""The cases: which queries run when. Pure: the same arguments give the same plan on every machine."""

import math

import dashboard
import queries
import tpch
from plan import Plan, Settings
from queries import CONSTANTS, Query, Random, Scan

STREAMS = 16
QUERIES_PER_STREAM = 4
STREAM_COUNTS = (1, 4, 16)
LOADS = (0.25, 0.5, 0.75, 1.0, 2.0, 4.0)
ALONE = (1, 6, 3, 18)
REPETITIONS = 3
SMALL_CLIENTS = 16
SMALL_QUERIES = 512
REFRESHES = 10
OWN_PERCENT = 5
"""How probable it is, in percent, that a query of `streams-own-constants` has constants of its own."""

# Phases that the figures know by name.
TIMES_ALONE = "one at a time"
FIRST_REFRESH, LATER_REFRESHES = "first refresh", "later refreshes"


def random_of(settings: Settings, *place: int) -> Random:
    """Random numbers of their own for each place in a plan."""
    random = Random(settings.seed)
    for number in place:
        random = Random(random.next() + number)
    return random


def scan_streams(settings: Settings) -> list[list[Scan]]:
    """16 streams of 4 scans."""
    random = Random(settings.seed)
    return [[queries.scan(random, settings.keys) for _ in range(QUERIES_PER_STREAM)] for _ in range(STREAMS)]


def streams(settings: Settings, own_percent: int, warm: bool = True) -> Plan:
    """The scans, of which so many percent, at random, have constants of their own."""
    plan, random = Plan(), random_of(settings, own_percent)

    def constants(index: int) -> dict[str, str]:
        if random.below(100) >= own_percent:
            return CONSTANTS
        plan.own_constants += 1
        return queries.own_constants(index)

    drawn = [[one.query(constants(first + index)) for index, one in enumerate(stream)]
             for first, stream in zip(range(0, STREAMS * QUERIES_PER_STREAM, QUERIES_PER_STREAM),
                                      scan_streams(settings))]
    if warm:
        plan.warm(queries.warm_scans(settings.keys))
    plan.phase("streams", drawn, [settings.stagger * settings.scale * index for index in range(STREAMS)])
    return plan


def dashboard_refreshes(settings: Settings) -> Plan:
    """All panels at once, again and again; a file arrives before each refresh but the first. No warm-up."""
    plan = Plan(goes_on=True)
    for refresh in range(2 if settings.quick else REFRESHES):
        plan.phase(LATER_REFRESHES if refresh else FIRST_REFRESH, [[panel] for panel in dashboard.panels(refresh)],
                   months=dashboard.MONTHS_AT_FIRST + refresh)
    return plan


def tpch_streams(settings: Settings) -> Plan:
    plan = Plan()
    plan.warm([tpch.validation(number, settings.scale) for number in range(1, 23)])
    for count in STREAM_COUNTS[:2] if settings.quick else STREAM_COUNTS:
        plan.phase(phase_of_streams(count), [tpch_stream(settings, count, index) for index in range(count)])
    return plan


def tpch_stream(settings: Settings, count: int, index: int) -> list[Query]:
    """All queries of TPC-H. Stream k has the same order in all phases, and other parameters."""
    random = random_of(settings, count, index)
    return [tpch.drawn(number, random, settings.scale)
            for number in Random(settings.seed + index).shuffled(range(1, 23))]


def open_loop(settings: Settings) -> Plan:
    """The scans alone, then as they arrive: those of `streams-cached`, over other keys in each phase."""
    plan = Plan()
    plan.warm(queries.warm_scans(settings.keys))
    scans = [one for stream in scan_streams(settings) for one in stream]

    def moved(place: int) -> list[Query]:
        random = random_of(settings, place)
        return [one.moved(random, settings.keys).query() for one in scans]

    plan.phase(TIMES_ALONE, [moved(0)], alone=True)
    for place, load in enumerate(LOADS[1::3] if settings.quick else LOADS, start=1):
        random = Random(settings.seed)
        arrivals, now = [], 0.0
        for _ in scans:
            arrivals.append(now)
            now -= math.log(random.unit()) / (load * settings.rate)
        plan.phase(phase_of_load(load), [[query] for query in random.shuffled(moved(place))], arrivals)
    return plan


def small(settings: Settings) -> Plan:
    random = Random(settings.seed)
    each = SMALL_QUERIES // SMALL_CLIENTS // (4 if settings.quick else 1)
    drawn = [[queries.small(random, settings.scale) for _ in range(each)] for _ in range(SMALL_CLIENTS)]
    plan = Plan()
    plan.warm(list({query.name: query for stream in drawn for query in stream}.values()))
    plan.phase("small", drawn)
    return plan


def alone(settings: Settings) -> Plan:
    """Four queries in turn, each time with other parameters."""
    plan, random, stream = Plan(), Random(settings.seed), []
    plan.warm([tpch.validation(number, settings.scale) for number in ALONE])
    for number in ALONE * (1 if settings.quick else REPETITIONS):
        query = tpch.drawn(number, random, settings.scale)
        while query in stream:
            query = tpch.drawn(number, random, settings.scale)
        stream.append(query)
    plan.phase("alone", [stream])
    return plan


def phase_of_streams(count: int) -> str:
    return f"{count} stream" if count == 1 else f"{count} streams"


def phase_of_load(load: float) -> str:
    return f"load {load:g}"


PLANS = {
    "streams-cached": lambda settings: streams(settings, 0),
    "streams-own-constants": lambda settings: streams(settings, OWN_PERCENT),
    "streams-distinct": lambda settings: streams(settings, 100),
    "streams-slow-device": lambda settings: streams(settings, 0, warm=False),
    "dashboard": dashboard_refreshes,
    "tpch": tpch_streams,
    "open-loop": open_loop,
    "small": small,
    "alone": alone,
}
