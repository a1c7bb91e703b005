"""Words made of numbers: how numbers, tables and lists are written."""

from figures import Figure

TITLES = {"coscan": "coscan", "coscan-no-results": "coscan-no-results", "coscan-running": "coscan-running",
          "duckdb": "DuckDB", "chdb": "chDB", "datafusion": "DataFusion"}

WIDTH = 120


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


def summary_table(figures: list[Figure], engines: list[str], compared: list[str]) -> list[str]:
    """Factors of times, the lowest of those compared in bold."""
    lines = ["| case | figure | " + " | ".join(TITLES[engine] for engine in engines) + " | coscan's median |",
             "|---|---|" + "---:|" * (len(engines) + 1)]
    for figure in figures:
        factors = {engine: figure.factor(engine) for engine in engines}
        lowest = min((factors[engine] for engine in compared if factors[engine] is not None), default=None)
        cells = []
        for engine, factor in factors.items():
            # An engine that finished has no factor where coscan failed.
            missing = "failed" if figure.median(engine) is None else "–"
            text = missing if factor is None else factor_text(factor)
            cells.append(f"**{text}**" if factor is not None and factor == lowest and engine in compared else text)
        lines.append(f"| [`{figure.case}`](#{figure.case}) | {figure.label} | {' | '.join(cells)} "
                     f"| {with_unit(figure, 'coscan')} |")
    return lines
