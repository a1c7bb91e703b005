"""Results."""

import html
import importlib
from collections.abc import Iterator
from typing import Any

from coscan import _native

# The rows that are shown by default.
_ROWS_SHOWN = 20


def _package(name: str, method: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"{method} needs the package {name}: pip install {name}") from error


class Result:
    """The rows of a statement, which runs when they are first asked for.

    Rows stream once: to `arrow()`, `pl()`, `df()`, an iteration, or any package that reads `__arrow_c_stream__`; or they are fetched one
    after another by `fetchone()`, `fetchmany()` and `fetchall()`. After `collect()` they are in memory and can be read again and again.
    """

    def __init__(self, native: _native.Result) -> None:
        self._native = native

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._native.columns

    @property
    def types(self) -> list[str]:
        """The types of the columns, as Arrow names them."""
        return self._native.types

    def collect(self) -> "Result":
        """Runs the statement, and keeps all rows in memory, which counts for the session's budget."""
        self._native.keep()
        return self

    def arrow(self) -> Any:
        """All rows as a `pyarrow.Table`."""
        return _package("pyarrow", "arrow()").table(self)

    def pl(self) -> Any:
        """All rows as a `polars.DataFrame`."""
        return _package("polars", "pl()").DataFrame(self)

    def df(self) -> Any:
        """All rows as a `pandas.DataFrame`."""
        _package("pandas", "df()")
        return self.arrow().to_pandas()

    to_arrow_table = arrow
    to_polars = pl
    to_pandas = df

    def fetchone(self) -> "tuple[Any, ...] | None":
        """The next row, or `None` after the last one."""
        rows = self._native.fetch(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        """The next rows, at most `size`."""
        return self._native.fetch(size)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        return self._native.fetch()

    def __iter__(self) -> Iterator[_native.Batch]:
        """The batches of rows. Each exports `__arrow_c_array__`, and has `rows()`."""
        return self._native.batches()

    def show(self, rows: int = _ROWS_SHOWN) -> None:
        """Prints the first rows. Keeps all rows in memory."""
        table, count = self._native.text(rows)
        print(table)
        if count > rows:
            print(f"{rows:,} of {count:,} rows")

    def explain(self, analyze: bool = False) -> str:
        """The plan. With `analyze`, runs the statement and adds its figures."""
        return self._native.explain(analyze)

    def __arrow_c_schema__(self) -> Any:
        return self._native.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._native.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        columns = zip(self.columns, self.types, strict=True)
        return f"<coscan.Result: {', '.join(f'{name} {kind}' for name, kind in columns)}>"

    def _repr_html_(self) -> str:
        rows = self._native.texts(_ROWS_SHOWN)
        count = self._native.keep()
        cells = lambda kind, texts: "".join(f"<{kind}>{text}</{kind}>" for text in texts)  # noqa: E731
        text = lambda value: "<i>NULL</i>" if value is None else html.escape(value)  # noqa: E731
        head = cells("th", map(html.escape, self.columns))
        body = "".join(f"<tr>{cells('td', map(text, row))}</tr>" for row in rows)
        more = f"<p>{len(rows):,} of {count:,} rows</p>" if count > len(rows) else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
