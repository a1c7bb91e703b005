"""Queries of the package `datafusion` that are executed by coscan."""

import importlib.metadata
from typing import TYPE_CHECKING, Any

from coscan._native import Error
from coscan.result import Result

if TYPE_CHECKING:
    from coscan.session import Session

# Plans of other versions mean other things.
_VERSION = "55"


def run(session: "Session", dataframe: Any) -> Result:
    """See `Session.run`."""
    try:
        version = importlib.metadata.version("datafusion")
    except importlib.metadata.PackageNotFoundError as error:
        raise ImportError(f"run() takes a DataFrame of the package datafusion: pip install datafusion=={_VERSION}.*") from error
    if version.split(".")[0] != _VERSION:
        raise Error(f"datafusion is {version}, and coscan understands plans of {_VERSION}: pip install datafusion=={_VERSION}.*")
    try:
        encoded = dataframe.logical_plan().to_bytes()
    except AttributeError:
        raise TypeError(f"run() takes a DataFrame of the package datafusion, not {type(dataframe)}") from None
    except Exception as error:  # What cannot be encoded, datafusion says by a plain Exception.
        reason = str(error).strip().splitlines()[-1]
    else:
        native, reason = session._native.plan(encoded)
        if native is not None:
            return Result(native)
    plan = dataframe.execution_plan().display_indent()
    note = f"executed by the package datafusion, and shares nothing: {reason}\n{plan}"
    return Result(session._native.foreign(dataframe.schema(), dataframe, note))


class Shared:
    """A context of the package `datafusion` whose queries are executed by coscan: see `Session.datafusion`."""

    def __init__(self, session: "Session", context: Any) -> None:
        self._session = session
        self._context = context

    def sql(self, text: str) -> Result:
        """Plans a statement in the context, and executes it in the session."""
        return run(self._session, self._context.sql(text))

    def table(self, name: str) -> Result:
        """All rows of a table of the context."""
        return run(self._session, self._context.table(name))
