"""Results."""

import asyncio
import html
import importlib
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from typing import Any, TypeVar

from coscan import _native
from coscan.progress import Shown

_T = TypeVar("_T")

# The rows that are shown by default.
_ROWS_SHOWN = 20


def _package(name: str, method: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"{method} needs the package {name}: pip install {name}") from error


def _html_row(kind: str, texts: "Sequence[str | None]") -> str:
    cells = ("<i>NULL</i>" if text is None else html.escape(text) for text in texts)
    return "<tr>" + "".join(f"<{kind}>{cell}</{kind}>" for cell in cells) + "</tr>"


def _wake(event: "asyncio.Future[None]") -> None:
    if not event.done():
        event.set_result(None)


async def _polled(poll: "Callable[[Callable[[], None]], _T | None]") -> _T:
    """The first value of `poll`, which calls back when it may have one."""
    loop = asyncio.get_running_loop()
    while True:
        event = loop.create_future()

        def call_back() -> None:
            try:
                loop.call_soon_threadsafe(_wake, event)
            except RuntimeError:
                pass  # The loop is closed: nobody waits.

        value = poll(call_back)
        if value is not None:
            return value
        await event


class Result:
    """The rows of a statement, which runs when they are first asked for.

    Rows stream once: to `arrow()`, `pl()`, `df()`, an iteration, or any package that reads `__arrow_c_stream__`; or they are fetched one
    after another by `fetchone()`, `fetchmany()` and `fetchall()`. After `collect()` they are in memory and can be read again and again.

    In a coroutine, `await result` collects the rows, and `async for batch in result` streams them, while the event loop goes on.
    Cancelling the task cancels the statement.
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
        with self._shown():
            self._native.keep()
        return self

    def arrow(self) -> Any:
        """All rows as a `pyarrow.Table`."""
        pyarrow = _package("pyarrow", "arrow()")
        with self._shown():
            return pyarrow.table(self)

    def pl(self) -> Any:
        """All rows as a `polars.DataFrame`."""
        polars = _package("polars", "pl()")
        with self._shown():
            return polars.DataFrame(self)

    def df(self) -> Any:
        """All rows as a `pandas.DataFrame`."""
        _package("pandas", "df()")
        return self.arrow().to_pandas()

    to_arrow_table = arrow
    to_polars = pl
    to_pandas = df

    def fetchone(self) -> "tuple[Any, ...] | None":
        """The next row, or `None` after the last one."""
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        """The next rows, at most `size`."""
        with self._shown():
            return self._native.fetch(size)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        with self._shown():
            return self._native.fetch()

    def __iter__(self) -> Iterator[_native.Batch]:
        """The batches of rows. Each exports `__arrow_c_array__`, and has `rows()`."""
        return self._native.batches()

    async def __aiter__(self) -> AsyncIterator[_native.Batch]:
        batches = self._native.batches()
        while True:
            (batch,) = await _polled(batches.poll)
            if batch is None:
                return
            yield batch

    def __await__(self) -> "Generator[Any, None, Result]":
        return self._collected().__await__()

    async def _collected(self) -> "Result":
        collecting = self._native.keep_soon()
        if collecting is not None:
            await _polled(collecting.poll)
        return self

    @property
    def progress(self) -> tuple[int, int]:
        """The chunks of tables that the running statement is done with, and those that it needs as far as it knows yet."""
        return self._native.progress()

    def _shown(self) -> Shown:
        return Shown(self._native.progress)

    def show(self, rows: int = _ROWS_SHOWN) -> None:
        """Prints the first rows. Keeps all rows in memory."""
        with self._shown():
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
        with self._shown():
            rows = self._native.texts(_ROWS_SHOWN)
        count = self._native.keep()
        head = _html_row("th", self.columns)
        body = "".join(_html_row("td", row) for row in rows)
        more = f"<p>{len(rows):,} of {count:,} rows</p>" if count > len(rows) else ""
        return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>{more}"
