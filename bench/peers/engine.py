"""What an engine is to a worker.

It opens the tables when it is made: a file of each, or a folder that is partitioned as Hive does, in which new files
are seen by the next query. `client()` gives a function that runs a statement and returns its whole result in the
engine's own form, for one thread; `rows()` makes tuples of that, outside of what is timed. `pids` are the processes
whose resources count.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Setup:
    """What every engine gets."""
    files: dict[str, str]
    """The Parquet file of each table."""
    folders: dict[str, str]
    """The folder of each table that has many files, and gets more."""
    partition: str
    """The column of text that the names of files in folders give: `COLUMN=VALUE`."""
    memory_bytes: int
    cores: int
    scratch: str
    """A folder for temporary files."""
    coscan: str
    """The binary `coscan`."""
    pool_bytes: int | None
    """coscan's memory for stored pages; by default half of its memory."""


class Engine:
    """What most engines have in common."""
    pids = [os.getpid()]

    def client(self) -> Callable[[str], object]:
        raise NotImplementedError

    def client_alone(self) -> Callable[[str], object]:
        """A client whose queries neither take results of others nor leave any: for warm-up, and for times alone."""
        return self.client()

    @staticmethod
    def rows(result) -> list[tuple]:
        return result

    def close(self) -> None:
        pass
