"""Sessions."""

import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from coscan import _native, plans
from coscan._native import Table
from coscan.result import Result
from coscan.server import Server


def _is_location(data: object) -> bool:
    return isinstance(data, (str, os.PathLike))


def _locations(data: object) -> "list[str] | None":
    """The locations of files, or `None` if it is something else."""
    locations = [data] if _is_location(data) else data
    if isinstance(locations, (list, tuple)) and locations and all(map(_is_location, locations)):
        return [os.fspath(location) for location in locations]
    return None


def _options(options: object) -> list[tuple[str, str]]:
    if not isinstance(options, Mapping) or not all(isinstance(text, str) for item in options.items() for text in item):
        raise TypeError("options are a dict of texts, by the names of options")
    return list(options.items())


def _path(file: "str | os.PathLike[str] | None") -> "str | None":
    return None if file is None else os.fspath(file)


class Session:
    """Tables, settings, and memory that all queries of the session share.

    `memory` is the budget in bytes for pages, decoded columns, footers, operators, kept results and registered Arrow data. By default it
    is a quarter of the memory that this process may use, and at least 256 MB. `policy` decides what is read next: `relevance` unless you
    compare policies.

    All methods may be called in any thread, and let other threads run while they wait. `close()`, or the end of a `with` statement, stops
    the servers of the session; results that are still held can be read.
    """

    def __init__(self, memory: "int | None" = None, policy: "str | None" = None) -> None:
        if memory is not None and memory <= 0:
            raise ValueError(f"memory is {memory}: give a number of bytes above 0")
        self._open: _native.Session | None = _native.Session(memory, policy)
        # They run until the session ends, also if nobody else holds them.
        self._servers: list[Server] = []

    @property
    def _native(self) -> _native.Session:
        if self._open is None:
            raise _native.Error("the session is closed: make another")
        return self._open

    def close(self) -> None:
        """Stops the servers of the session, and gives its memory back once no results are held. It may be called again."""
        servers, self._servers = self._servers, []
        for server in servers:
            server.stop()
        self._open = None

    def __enter__(self) -> "Session":
        return self

    def __exit__(
        self, kind: "type[BaseException] | None", error: "BaseException | None", trace: "TracebackType | None"
    ) -> None:
        self.close()

    def sql(self, text: str, parameters: "Sequence[object] | Mapping[str, object] | None" = None) -> Result:
        """Plans a query, which runs when its rows are first asked for. Runs any other statement at once.

        `parameters` are the values of `?`, or of `$1`, `$2` … (a list or tuple), or of `$name` (a dict).

        Raises `SqlError` if the statement is wrong, and `TypeError` for a parameter that SQL has no type for. Waits for planning, and for
        statements that run at once: in a coroutine, `asyncio.to_thread(session.sql, text)` lets the event loop go on.
        """
        return Result(self._native.sql(text, parameters))

    def scan(
        self,
        source: "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]",
        columns: "Sequence[str] | None" = None,
        where: "str | None" = None,
    ) -> Result:
        """Rows of a table of the session, or of files, in any order: iterate over the result for its batches.

        `source` is the name of a table; or a path, a pattern or a URL, or a list of them. `columns` are the names of columns as the
        files have them, all of them by default. `where` is a condition in SQL.
        """
        if isinstance(columns, str):
            raise TypeError("columns is a list of names")
        locations = _locations(source)
        if locations is None:
            raise TypeError(f"a source is the name of a table, a path, a pattern or a URL, or a list of these, not {type(source)}")
        names = None if columns is None else list(columns)
        return Result(self._native.scan(locations, names, where))

    def register(self, name: str, data: object, options: "Mapping[str, str] | None" = None) -> None:
        """Adds a table, in place of one of the same name. Names keep their case: `FROM "Trips"`.

        `data` is one of: a path, a pattern or a URL of Parquet files, or a list of them; the directory of a Delta Lake table; an object with
        `__arrow_c_stream__`, such as a table of pyarrow, polars or pandas, or a result of coscan, whose rows count for the session's
        budget. `options` are those of `CREATE EXTERNAL TABLE`, such as `{"aws.access_key_id": …, "aws.secret_access_key": …}` of a URL.
        Without them, credentials come from the environment: `AWS_ACCESS_KEY_ID` and so on.

        Raises `StoreError` if files cannot be read, and `ResourceError` if rows are more than is left of the budget. A table that is
        replaced counts until the new one is there.
        """
        locations = _locations(data)
        if locations is not None:
            self._native.register_files(name, locations, [] if options is None else _options(options))
        elif options:
            raise TypeError("options apply to files, not to Arrow data")
        elif isinstance(data, Result):
            native = self._native
            data._read_by(lambda rows: native.register_data(name, rows))
        else:
            self._native.register_data(name, data)

    def deregister(self, name: str) -> None:
        """Removes a table of the session. Its files stay. Raises `SqlError` if there is no such table."""
        self._native.deregister(name)

    def table(self, name: str) -> Table:
        """A table for a context of the package `datafusion`: `context.register_table("trips", session.table("trips"))`.

        Its scans share with those of the session. Filters of joins and top-k queries do not reach it, and joins chunk by chunk are
        off: where the whole query can be executed by coscan, `run()` shares more.
        """
        return self._native.table(name)

    def run(self, dataframe: Any) -> Result:
        """Executes a `DataFrame` of the package `datafusion` 55, which only plans it.

        Files are opened by this session: credentials and settings of the context do not come with the plan. What exists only there,
        such as tables in memory and functions in Python, makes `datafusion` execute the query as before: a warning and `explain()` say so.
        """
        return plans.run(self._native, dataframe)

    def datafusion(self, context: Any) -> plans.DataFusionContext:
        """A context of the package `datafusion` whose statements are executed by `run()`: `session.datafusion(context).sql(…)`."""
        return plans.DataFusionContext(self.run, context)

    def serve(
        self,
        *,
        postgres: "str | None" = None,
        flight: "str | None" = None,
        http: "str | None" = None,
        users_file: "str | os.PathLike[str] | None" = None,
        config: "str | os.PathLike[str] | None" = None,
    ) -> Server:
        """Starts a server in this process, on the files and Delta Lake tables of this session that are registered now.

        `postgres`, `flight` and `http` are addresses to listen at, such as `127.0.0.1:5432`; port 0 is a free one. Without any, and
        without `config`, the PostgreSQL protocol and the dashboard get free ports of this machine. `config` is a configuration file of
        `coscan serve`. Without a file of users, everyone on this machine may connect, and nobody else. Views and Arrow data are not served.

        Raises `ValueError` for an address that is none, and `Error` if it is in use.
        """
        if config is None and postgres is flight is http is None:
            postgres = http = "127.0.0.1:0"
        server = Server(self._native.serve(_path(config), _path(users_file), postgres, flight, http))
        self._servers = [*(server for server in self._servers if server.is_running), server]
        return server

    @property
    def memory(self) -> int:
        """The memory budget in bytes."""
        return self._native.memory

    @property
    def memory_used(self) -> int:
        """The bytes of the budget that are in use."""
        return self._native.memory_used

    def __repr__(self) -> str:
        if self._open is None:
            return "<coscan.Session: closed>"
        return f"<coscan.Session: {self.memory_used / 1e6:,.0f} of {self.memory / 1e6:,.0f} MB in use>"
