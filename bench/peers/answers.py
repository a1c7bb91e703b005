"""Whether two answers are the same: engines round differently, and order rows that are equal by the order."""

import datetime
from decimal import Decimal

# Averages of decimals have six digits after the point in some engines, and all digits of a float in others.
DIGITS_ERROR = 1e-5
RELATIVE_ERROR = 1e-8


def normalized(rows: list[tuple]) -> list[list]:
    """Rows of texts, floats and None, in an order that does not depend on the engine's."""
    plain = [[_plain(value) for value in row] for row in rows]
    return sorted(plain, key=lambda row: [_sort_key(value) for value in row])


def _plain(value):
    match value:
        case None | str() | float():
            return value
        case bool():
            return str(value)
        case int() | Decimal():
            return float(value)
        case datetime.datetime():
            return value.date().isoformat() if value.time() == datetime.time() else value.isoformat()
        case datetime.date():
            return value.isoformat()
        case bytes():
            return value.decode()
        case _:
            return str(value)


def _sort_key(value) -> tuple:
    if value is None:
        return (0, "")
    # Rounded, so that the last digits do not decide which of two rows comes first.
    return (1, round(value, 3)) if isinstance(value, float) else (2, value)


def difference(actual: list[list], expected: list[list]) -> str | None:
    """Where two normalized answers differ, or None."""
    if len(actual) != len(expected):
        return f"{len(actual)} rows instead of {len(expected)}"
    for index, (row, wanted) in enumerate(zip(actual, expected)):
        if len(row) != len(wanted) or not all(map(_same, row, wanted)):
            return f"row {index + 1} is {row} instead of {wanted}"
    return None


def _same(value, wanted) -> bool:
    if isinstance(value, float) and isinstance(wanted, float):
        return abs(value - wanted) <= DIGITS_ERROR + RELATIVE_ERROR * abs(wanted)
    return value == wanted
