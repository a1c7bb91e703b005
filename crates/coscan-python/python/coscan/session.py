"""Sessions."""

import os
from collections.abc import Mapping, Sequence

from coscan import _native
from coscan.result import Result


class Session:
    """Tables, settings, and memory that all queries of the session share.

    `memory` is the budget in bytes for pages, decoded columns, footers, operators and kept results. By default it is a quarter of the
    memory that this process may use. `policy` decides what is read next: `relevance` unless you compare policies.

    All methods may be called in any thread, and let other threads run while they wait.
    """

    def __init__(self, memory: "int | None" = None, policy: "str | None" = None) -> None:
        self._native = _native.Session(memory, policy)

    def sql(self, text: str, parameters: "Sequence[object] | Mapping[str, object] | None" = None) -> Result:
        """Plans a query, which runs when its rows are first asked for. Runs any other statement at once.

        `parameters` are the values of `$1`, `$2` … (a list or tuple) or of `$name` (a dict).
        """
        return Result(self._native.sql(text, parameters))

    def register(self, name: str, data: object) -> None:
        """Adds a table: a path, a pattern or a URL of Parquet files, the directory of a Delta Lake table, or Arrow data, which is copied:
        any object with `__arrow_c_stream__`, such as a table of pyarrow, polars or pandas, or a result of coscan.
        """
        if isinstance(data, (str, os.PathLike)):
            self._native.register_files(name, os.fspath(data))
        else:
            self._native.register_data(name, data)

    def deregister(self, name: str) -> None:
        """Removes a table of the session. Its files stay."""
        self._native.deregister(name)

    @property
    def memory(self) -> int:
        """The memory budget in bytes."""
        return self._native.memory

    @property
    def memory_used(self) -> int:
        """The bytes of the budget that are in use."""
        return self._native.memory_used

    def __repr__(self) -> str:
        return f"<coscan.Session: {self.memory_used / 1e6:,.0f} of {self.memory / 1e6:,.0f} MB in use>"
