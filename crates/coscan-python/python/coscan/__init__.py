"""Many queries on the same Parquet tables, one stream of reads and decoding for all of them.

>>> import coscan
>>> coscan.sql("SELECT count(*) FROM 'trips/*.parquet'").show()
>>> session = coscan.Session(memory=4 << 30)
>>> session.register("trips", "s3://bucket/trips/")
>>> session.sql("SELECT city, avg(fare) FROM trips WHERE fare > $1 GROUP BY city", [5]).arrow()

Queries of one session that run at the same time, in as many threads as you like, share what they read.
"""

import atexit
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from coscan._native import (
    Cancelled,
    DataError,
    Error,
    ResourceError,
    SqlError,
    StoreError,
    __version__,
    shut_down as _shut_down,
)
from coscan.plans import Shared
from coscan.result import Result
from coscan.server import Server
from coscan.session import Session

__all__ = [
    "Cancelled",
    "DataError",
    "Error",
    "ResourceError",
    "Result",
    "Server",
    "Session",
    "SqlError",
    "StoreError",
    "__version__",
    "datafusion",
    "default_session",
    "run",
    "scan",
    "sql",
]

_lock = threading.Lock()
_default: "Session | None" = None


def default_session() -> Session:
    """The session of `coscan.sql`, which is made when it is first asked for."""
    global _default
    with _lock:
        if _default is None:
            _default = Session()
        return _default


def sql(text: str, parameters: "Sequence[object] | Mapping[str, object] | None" = None) -> Result:
    """Plans a statement in the default session: see `Session.sql`."""
    return default_session().sql(text, parameters)


def scan(
    source: "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]",
    columns: "Sequence[str] | None" = None,
    where: "str | None" = None,
) -> Result:
    """Rows of files, in any order: see `Session.scan`."""
    return default_session().scan(source, columns, where)


def run(dataframe: Any) -> Result:
    """Executes a `DataFrame` of the package `datafusion` in the default session: see `Session.run`."""
    return default_session().run(dataframe)


def datafusion(context: Any) -> Shared:
    """A context of the package `datafusion` whose statements the default session executes: see `Session.datafusion`."""
    return default_session().datafusion(context)


def _forget() -> None:
    global _default, _lock
    _default = None
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
atexit.register(_shut_down)
