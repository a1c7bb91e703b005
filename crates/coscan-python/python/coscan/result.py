"""Results."""

import asyncio
import functools
import html
import importlib
import weakref
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from coscan import _native
from coscan.progress import ProgressLine

_T = TypeVar("_T")

# The rows that are shown by default.
_ROWS_SHOWN = 20


def _package(name: str, method: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"{method} needs the package {name}: pip install {name}") from error


def _row_count(rows: int) -> int:
    if rows < 0:
        raise ValueError(f"{rows} rows: give 0 or more")
    return rows


def _shown_of(shown: int, count: "int | None") -> str:
    """A line that says of how many rows the first ones are shown, if there are more."""
    if count is None:
        return f"the first {shown:,} rows\n"
    return f"{shown:,} of {count:,} rows\n" if count > shown else ""


def _html_row(kind: str, texts: "Sequence[str | None]") -> str:
    cells = ("<i>NULL</i>" if text is None else html.escape(text) for text in texts)
    return "<tr>" + "".join(f"<{kind}>{cell}</{kind}>" for cell in cells) + "</tr>"


def _call_back(loop: asyncio.AbstractEventLoop, reference: "weakref.ref[asyncio.Future[None]]") -> None:
    event = reference()
    if event is not None:
        try:
            loop.call_soon_threadsafe(_wake, event)
        except RuntimeError:
            pass  # The loop is closed: nobody waits.


def _wake(event: "asyncio.Future[None]") -> None:
    if not event.done():
        event.set_result(None)


async def _polled(poll: "Callable[[Callable[[], None]], _T | None]") -> _T:
    """The first value of `poll`, which calls back when it may have one."""
    loop = asyncio.get_running_loop()
    while True:
        event = loop.create_future()
        # Whoever calls back must not keep a task alive that is forgotten.
        value = poll(functools.partial(_call_back, loop, weakref.ref(event)))
        if value is not None:
            return value
        await event


class Progress(NamedTuple):
    """The progress of a statement, in chunks of its tables: about a hundred thousand rows each."""

    done: int
    """The chunks that the statement is done with."""
    needed: int
    """The chunks that it needs, as far as it knows yet."""


class Result:
    """The rows of a statement, which runs when they are first asked for. `Session.sql()` and `Session.scan()` make it.

    Rows stream once: to `arrow()`, `pl()`, `df()`, an iteration, or any package that reads `__arrow_c_stream__`; or they are fetched one after
    another by `fetchone()`, `fetchmany()` and `fetchall()`. Reading them again raises `Error`. After `collect()` they are in memory, and
    can be read any number of times; fetching goes on after the last row that was fetched.

    In a coroutine, `await result` collects the rows, and `async for batch in result` streams them, while the event loop goes on.
    Cancelling the task cancels the statement. `asyncio.create_task` and task groups take `result.collect_async()`.
    """

    def __init__(self, native: _native.Result) -> None:
        self._native = native
        self._is_fetched = False

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._native.columns

    @property
    def types(self) -> list[str]:
        """The types of the columns, as Arrow's library for Rust names them: `Int64`, `Utf8View` …"""
        return self._native.types

    def collect(self) -> "Result":
        """Runs the statement, and keeps all rows in memory, which counts for the session's budget."""
        with self._shown():
            self._native.collect()
        return self

    async def collect_async(self) -> "Result":
        """Runs the statement and keeps all rows, as `collect()`, while the event loop goes on."""
        collecting = self._native.start_collecting()
        if collecting is not None:
            try:
                await _polled(collecting.poll)
            finally:
                # At once: the traceback of an exception holds it longer.
                collecting.cancel()
        return self

    def cancel(self) -> None:
        """Cancels the statement. Whoever waits for its rows, in any thread or coroutine, gets `Cancelled`."""
        self._native.cancel()

    @property
    def row_count(self) -> "int | None":
        """The number of rows, if all are in memory."""
        return self._native.row_count

    def arrow(self) -> Any:
        """All rows as a `pyarrow.Table`."""
        return self._read_by(_package("pyarrow", "arrow()").table)

    def pl(self) -> Any:
        """All rows as a `polars.DataFrame`."""
        return self._read_by(_package("polars", "pl()").DataFrame)

    def df(self) -> Any:
        """All rows as a `pandas.DataFrame`."""
        _package("pandas", "df()")
        return self._read_by(_package("pyarrow", "df()").table).to_pandas()

    to_arrow_table = arrow
    to_polars = pl
    to_pandas = df

    def _read_by(self, read: Callable[["Result"], Any]) -> Any:
        """The rows as a reader of Arrow streams reads them, such as `pyarrow.table`. If the statement fails, raises its own error instead
        of the reader's, which has only its text.
        """
        try:
            with self._shown():
                return read(self)
        except Exception as error:
            failure = self._native.failure()
            if failure is None:
                raise
            raise failure from error
        except BaseException:
            self.cancel()
            raise

    def fetchone(self) -> "tuple[Any, ...] | None":
        """The next row, or `None` after the last one."""
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        """The next rows, at most `size`."""
        return self._fetch(_row_count(size))

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        return self._fetch(None)

    def _fetch(self, size: "int | None") -> list[tuple[Any, ...]]:
        if self._is_fetched and size is not None:
            # The next rows are there, or come soon.
            return self._native.fetch(size)
        self._is_fetched = True
        with self._shown():
            return self._native.fetch(size)

    def __iter__(self) -> Iterator[_native.Batch]:
        """The batches of rows. Each exports `__arrow_c_array__`, and has `rows()`."""
        return self._native.batches()

    async def __aiter__(self) -> AsyncIterator[_native.Batch]:
        batches = self._native.batches()
        try:
            while True:
                (batch,) = await _polled(batches.poll)
                if batch is None:
                    return
                yield batch
        finally:
            batches.cancel()

    def __await__(self) -> "Generator[Any, None, Result]":
        return self.collect_async().__await__()

    @property
    def progress(self) -> Progress:
        """The progress of the running statement."""
        return Progress(*self._native.progress())

    def _shown(self) -> ProgressLine:
        return ProgressLine(self._native.progress)

    def show(self, rows: int = _ROWS_SHOWN) -> None:
        """Prints the first rows, at most `rows`. The statement may run for them alone, until there are about ten thousand. Rows can
        still be read afterwards.
        """
        with self._shown():
            table, count = self._native.first_as_table(_row_count(rows))
        print(table)
        print(_shown_of(rows, count), end="")

    def explain(self, analyze: bool = False) -> str:
        """The plan. With `analyze`, runs the statement and adds its figures. `cancel()` ends it, too."""
        return self._native.explain(analyze)

    def __arrow_c_schema__(self) -> Any:
        return self._native.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._native.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        columns = zip(self.columns, self.types, strict=True)
        return f"<coscan.Result: {', '.join(f'{name} {kind}' for name, kind in columns)}>"

    def _repr_html_(self) -> str:
        if not self.columns:
            return ""
        with self._shown():
            rows, count = self._native.first_as_texts(_ROWS_SHOWN)
        head = _html_row("th", self.columns)
        body = "".join(_html_row("td", row) for row in rows)
        more = _shown_of(len(rows), count)
        return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>{more and f'<p>{more}</p>'}"
