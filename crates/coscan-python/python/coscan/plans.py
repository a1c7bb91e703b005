"""Queries of the package `datafusion` that are executed by coscan."""

import importlib.metadata
import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

from coscan import _native
from coscan._native import Error
from coscan.result import Result

# Plans of other versions mean other things.
_VERSION = "55"


def run(session: _native.Session, dataframe: Any) -> Result:
    """See `Session.run`."""
    try:
        version = importlib.metadata.version("datafusion")
    except importlib.metadata.PackageNotFoundError as error:
        raise ImportError(f"run() takes a DataFrame of the package datafusion: pip install datafusion=={_VERSION}.*") from error
    if version.split(".")[0] != _VERSION:
        raise Error(f"datafusion is {version}, and coscan understands plans of {_VERSION}: pip install datafusion=={_VERSION}.*")
    if not hasattr(dataframe, "logical_plan"):
        raise TypeError(f"run() takes a DataFrame of the package datafusion, not {type(dataframe)}")
    try:
        encoded = dataframe.logical_plan().to_bytes()
    except Exception as error:  # What cannot be encoded, datafusion says by a plain Exception.
        reason = str(error).strip().rpartition("\n")[2]
    else:
        native, reason = session.plan(encoded)
        if native is not None:
            return Result(native)
    note = f"executed by the package datafusion, and shares nothing: {reason}"
    warnings.warn(note, stacklevel=_level_of_caller())
    plan = dataframe.execution_plan().display_indent()
    return Result(session.foreign(dataframe.schema(), dataframe, f"{note}\n{plan}"))


def _level_of_caller() -> int:
    """The `stacklevel` of the first caller outside of this package."""
    level = 1
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "coscan":
        level, frame = level + 1, frame.f_back
    return level


class DataFusionContext:
    """A context of the package `datafusion` whose queries are executed by coscan. `Session.datafusion()` makes it."""

    def __init__(self, run: Callable[[Any], Result], context: Any) -> None:
        if not hasattr(context, "sql"):
            raise TypeError(f"datafusion() takes a SessionContext of the package datafusion, not {type(context)}")
        self._run = run
        self._context = context

    def sql(self, text: str) -> Result:
        """Plans a statement in the context, and executes it in the session."""
        return self._run(self._context.sql(text))

    def table(self, name: str) -> Result:
        """All rows of a table of the context."""
        return self._run(self._context.table(name))
