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
from coscan.result import Result
from coscan.session import Session

__all__ = [
    "Cancelled",
    "DataError",
    "Error",
    "ResourceError",
    "Result",
    "Session",
    "SqlError",
    "StoreError",
    "__version__",
    "default_session",
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


def sql(text: str, parameters: object = None) -> Result:
    """Plans a statement in the default session: see `Session.sql`."""
    return default_session().sql(text, parameters)


def _forget() -> None:
    global _default, _lock
    _default = None
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
atexit.register(_shut_down)
