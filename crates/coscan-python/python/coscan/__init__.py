"""Queries on Parquet tables that share reads, decoding and partial aggregates.

>>> import coscan
>>> coscan.sql("SELECT count(*) FROM 'trips/*.parquet'").show()
>>> session = coscan.Session(memory=4 << 30)
>>> session.register("trips", "s3://bucket/trips/")
>>> session.sql("SELECT city, avg(fare) FROM trips WHERE fare > $1 GROUP BY city", [5]).arrow()

Queries of one session that run at the same time, in any number of threads or coroutines, share what they read.
"""

import atexit
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from coscan._native import (
    Batch,
    Cancelled,
    DataError,
    Error,
    ResourceError,
    SqlError,
    StoreError,
    Table,
    __version__,
    shut_down as _shut_down,
)
from coscan.plans import DataFusionContext
from coscan.result import Progress, Result
from coscan.server import Server
from coscan.session import Session

# `datafusion` is left out, so that `from coscan import *` does not hide the package of that name.
__all__ = [
    "Batch",
    "Cancelled",
    "DataError",
    "DataFusionContext",
    "Error",
    "Progress",
    "ResourceError",
    "Result",
    "Server",
    "Session",
    "SqlError",
    "StoreError",
    "Table",
    "__version__",
    "default_session",
    "deregister",
    "register",
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
    """Rows of a table or of files, in any order: see `Session.scan`."""
    return default_session().scan(source, columns, where)


def register(name: str, data: object, options: "Mapping[str, str] | None" = None) -> None:
    """Adds a table to the default session: see `Session.register`."""
    default_session().register(name, data, options)


def deregister(name: str) -> None:
    """Removes a table of the default session."""
    default_session().deregister(name)


def run(dataframe: Any) -> Result:
    """Executes a `DataFrame` of the package `datafusion` in the default session: see `Session.run`."""
    return default_session().run(dataframe)


def datafusion(context: Any) -> DataFusionContext:
    """A context of the package `datafusion` whose statements the default session executes: see `Session.datafusion`."""
    return default_session().datafusion(context)


def _forget() -> None:
    global _default, _lock
    _default = None
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
atexit.register(_shut_down)
