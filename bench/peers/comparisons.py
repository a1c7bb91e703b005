"""Who wins where: sentences and lists made of figures."""

import itertools

from figures import Figure
from words import TITLES, factor_text, percent, several, with_unit, wrapped

# Medians closer than this are about equal.
EQUAL = 0.05

NO_RESULTS = "coscan-no-results"
VARIANTS = (NO_RESULTS, "coscan-running")
"""coscan with other settings. They are no rivals of coscan."""


def rivals(engines: list[str]) -> list[str]:
    return [engine for engine in engines if engine != "coscan" and engine not in VARIANTS]


def lowest_sentence(figures: list[Figure], engines: list[str]) -> str:
    """Who of these has the lowest time in how many rows."""
    counts = {engine: 0 for engine in engines}
    compared = 0
    for figure in figures:
        medians = {engine: figure.median(engine) for engine in engines if figure.median(engine) is not None}
        if medians:
            counts[min(medians, key=medians.get)] += 1
            compared += 1
    first, *others = (f"{TITLES[engine]} {{}}in {count}" for engine, count in counts.items())
    parts = [first.format("has the lowest time "), *(part.format("") for part in others)]
    return f"of {compared} rows, {several(parts)}."


def line(figure: Figure, engine: str, base: str = "coscan") -> str:
    """Two medians and their factor."""
    doubt = " (rounds overlap)" if len(figure.values[engine]) > 1 and figure.overlaps(engine, base) else ""
    return (f"- `{figure.case}`, {figure.label}: {TITLES[engine]} {with_unit(figure, engine)}, {TITLES[base]} "
            f"{with_unit(figure, base)}, factor {factor_text(figure.factor(engine, base))}{doubt}.")


def wins(figures: list[Figure], engines: list[str], base: str = "coscan") -> list[tuple[Figure, str]]:
    """Figures in which an engine's median is below that of `base` by more than what is about equal, best first."""
    found = [(figure, engine) for figure in figures for engine in engines
             if figure.factor(engine, base) is not None and figure.factor(engine, base) < 1 - EQUAL]
    return sorted(found, key=lambda win: win[0].factor(win[1], base))


def what_results_give(times: list[Figure]) -> list[str]:
    """The section on shared results: the rows in which coscan is faster than without them, and the others."""
    measured = [figure for figure in times if figure.factor(NO_RESULTS) is not None]
    gains = [figure for figure, _ in wins(measured, ["coscan"], NO_RESULTS) if not figure.overlaps(NO_RESULTS)]
    losses = [figure for figure, _ in wins(measured, [NO_RESULTS]) if not figure.overlaps(NO_RESULTS)]
    lines = [wrapped(
        "Queries take results of each other if they have the same aggregates, keys and conditions, up to a range of "
        "the key by which the rows are ordered. **If your queries are all different, expect the figures of "
        f"{NO_RESULTS}.** With shared results, {len(gains)} of {len(measured)} times are more than {percent(EQUAL)} "
        f"lower and {len(losses)} are higher{rounds_say(measured)}.")]
    if gains:
        lines += ["", "Lower with shared results:", "", *(line(figure, "coscan", NO_RESULTS) for figure in gains)]
    if losses:
        lines += ["", "Lower without:", "", *(line(figure, NO_RESULTS) for figure in losses)]
    return lines


def rounds_say(measured: list[Figure]) -> str:
    """What several rounds tell of such differences, and one does not."""
    rounds = max((len(values) for figure in measured for values in figure.values.values()), default=0)
    if rounds > 1:
        return ", in each round; the others differ by less, or by what rounds differ by"
    return ". They are of one round, in which differences of up to 15 % may be those of the machine"


def where_others_win(times: list[Figure], others: list[Figure], by_streams: dict[str, list[Figure]],
                     engines: list[str]) -> list[str]:
    """The section: times, then processor time and memory, then how many of TPC-H's queries."""
    lines, against = [], rivals(engines)
    faster = wins(times, against)
    if faster:
        lines += ["Times of the first table that are more than "
                  f"{percent(EQUAL)} below coscan's, lowest factor first:", ""]
        lines += [line(figure, engine) for figure, engine in faster]
    else:
        lines.append(f"No time of another engine is more than {percent(EQUAL)} below coscan's in the first table.")
    if any("overlap" in text for text in lines):
        lines += ["", "Where rounds overlap, the difference is within what rounds differ by."]
    close = [short(figure, engine) for figure in times for engine in against
             if figure.factor(engine) is not None and abs(figure.factor(engine) - 1) <= EQUAL]
    if close:
        lines += ["", wrapped(f"About as fast as coscan (within {percent(EQUAL)}): " + "; ".join(close) + ".")]
    more = [win for win in wins(times, against, NO_RESULTS) if win not in faster]
    if more:
        lines += ["", wrapped(f"Faster than {NO_RESULTS} only, with factors to that: " + "; ".join(
            short(figure, engine, NO_RESULTS) for figure, engine in more) + ".")]
    for engine, (streams, queries) in itertools.product(against, by_streams.items()):
        known = [figure for figure in queries if figure.factor(engine) is not None]
        if known:
            names = [figure.label for figure in known if figure.factor(engine) < 1 - EQUAL]
            lines += ["", wrapped(f"In {streams} of TPC-H, by mean times, {TITLES[engine]} is faster than coscan in "
                                  f"{len(names)} of {len(known)} queries" + (f": {several(names)}." if names else "."))]
    for label, what in (("processor time", "Less processor time"), ("peak memory", "Less memory at the peak")):
        less = wins([figure for figure in others if figure.label.endswith(label)], against)
        if less:
            lines += ["", f"{what} than coscan:", ""] + [line(figure, engine) for figure, engine in less]
    return lines


def short(figure: Figure, engine: str, base: str = "coscan") -> str:
    return f"`{figure.case}`, {figure.label}: {TITLES[engine]} {factor_text(figure.factor(engine, base))}"
