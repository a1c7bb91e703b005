"""Words made of numbers: how a number is written, and who wins where."""

from figures import Figure

TITLES = {"coscan": "coscan", "duckdb": "DuckDB", "chdb": "chDB", "datafusion": "DataFusion"}

WIDTH = 120

# Medians closer than this are about equal.
EQUAL = 0.05


def number(value: float | None) -> str:
    """Three digits that count; large numbers as whole numbers with commas."""
    if value is None:
        return "failed"
    if value >= 100:
        return f"{value:,.0f}"
    if value == 0:
        return "0"
    digits = 2 if value < 10 else 1
    while value < 10 ** (2 - digits) and digits < 5:
        digits += 1
    return f"{value:.{digits}f}"


def wrapped(text: str, indent: str = "") -> str:
    """Text in lines of at most WIDTH characters."""
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line = indent + word
        else:
            line = f"{line} {word}" if line else word
    return "\n".join([*lines, line])


def with_unit(figure: Figure, engine: str) -> str:
    """The median with its unit."""
    median = figure.median(engine)
    return number(median) if median is None else f"{number(median)} {figure.unit}"


def several(names: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else "none"


def cell(figure: Figure, engine: str) -> str:
    """The median, with its factor beside coscan's."""
    median, factor = figure.median(engine), figure.factor(engine)
    # Where coscan's number is next to nothing, a factor says little.
    if engine == "coscan" or median is None or factor is None or factor >= 100:
        return number(median)
    return f"{number(median)} ({factor_text(factor)})"


def factor_text(factor: float) -> str:
    return f"{factor:.2f}" if factor < 10 else number(factor)


def percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def table(figures: list[Figure], engines: list[str], first: str = "") -> list[str]:
    """A row for each figure, a column for each engine."""
    lines = [f"| {first} | " + " | ".join(TITLES[engine] for engine in engines) + " |",
             "|---|" + "---:|" * len(engines)]
    for figure in figures:
        cells = " | ".join(cell(figure, engine) for engine in engines)
        lines.append(f"| {figure.label} [{figure.unit}] | {cells} |")
    return lines


def summary_table(figures: list[Figure], engines: list[str]) -> list[str]:
    """Factors of times, the lowest in bold."""
    lines = ["| case | figure | " + " | ".join(TITLES[engine] for engine in engines) + " | coscan's median |",
             "|---|---|" + "---:|" * (len(engines) + 1)]
    for figure in figures:
        factors = {engine: figure.factor(engine) for engine in engines}
        lowest = min((factor for factor in factors.values() if factor is not None), default=None)
        cells = []
        for engine, factor in factors.items():
            # An engine that finished has no factor where coscan failed.
            missing = "failed" if figure.median(engine) is None else "–"
            text = missing if factor is None else factor_text(factor)
            cells.append(f"**{text}**" if factor is not None and factor == lowest else text)
        lines.append(f"| [`{figure.case}`](#{figure.case}) | {figure.label} | {' | '.join(cells)} "
                     f"| {with_unit(figure, 'coscan')} |")
    return lines


def lowest_sentence(figures: list[Figure], engines: list[str]) -> str:
    """Who has the lowest time in how many rows."""
    counts = {engine: 0 for engine in engines}
    compared = 0
    for figure in figures:
        medians = {engine: figure.median(engine) for engine in engines if figure.median(engine) is not None}
        if medians:
            counts[min(medians, key=medians.get)] += 1
            compared += 1
    parts = [f"{TITLES[engine]}'s in {count}" for engine, count in counts.items()]
    return f"Of {compared} rows, the lowest time is {several(parts)}."


def win_line(figure: Figure, engine: str) -> str:
    rounds = len(figure.values[engine])
    doubt = " (rounds overlap)" if rounds > 1 and figure.overlaps(engine) else ""
    return (f"- `{figure.case}`, {figure.label}: {TITLES[engine]} {with_unit(figure, engine)}, coscan "
            f"{with_unit(figure, 'coscan')}, factor {figure.factor(engine):.2f}{doubt}.")


def wins(figures: list[Figure], engines: list[str]) -> list[tuple[float, Figure, str]]:
    """Figures in which another engine's median is below coscan's by more than what is about equal, best first."""
    found = [(figure.factor(engine), figure, engine) for figure in figures for engine in engines
             if engine != "coscan" and figure.factor(engine) is not None and figure.factor(engine) < 1 - EQUAL]
    return sorted(found, key=lambda win: win[0])


def where_others_win(times: list[Figure], others: list[Figure], queries: list[Figure], engines: list[str]) -> list[str]:
    """The section: times, then processor time and memory, then how many of TPC-H's queries."""
    lines = []
    faster = wins(times, engines)
    if faster:
        lines += ["Times of the first table that are more than "
                  f"{percent(EQUAL)} below coscan's, lowest factor first:", ""]
        lines += [win_line(figure, engine) for _, figure, engine in faster]
    else:
        lines.append(f"No time of another engine is more than {percent(EQUAL)} below coscan's in the first table.")
    if any("overlap" in line for line in lines):
        lines += ["", "Where rounds overlap, the difference is within what rounds differ by."]
    close = [f"`{figure.case}`, {figure.label}: {TITLES[engine]} {figure.factor(engine):.2f}"
             for figure in times for engine in engines
             if engine != "coscan" and figure.factor(engine) is not None and abs(figure.factor(engine) - 1) <= EQUAL]
    if close:
        lines += ["", wrapped(f"About as fast as coscan (within {percent(EQUAL)}): " + "; ".join(close) + ".")]
    for engine in engines:
        known = [figure for figure in queries if figure.factor(engine) is not None]
        if engine != "coscan" and known:
            names = [figure.label for figure in known if figure.factor(engine) < 1 - EQUAL]
            lines += ["", wrapped(f"In one stream of TPC-H, {TITLES[engine]} is faster than coscan in {len(names)} of "
                                  f"{len(known)} queries" + (f": {several(names)}." if names else "."))]
    for label, what in (("processor time", "Less processor time"), ("peak memory", "Less memory at the peak")):
        less = wins([figure for figure in others if figure.label.endswith(label)], engines)
        if less:
            lines += ["", f"{what} than coscan:", ""] + [win_line(figure, engine) for _, figure, engine in less]
    return lines
