"""A plan: which queries run when. What a worker gets is made of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from queries import Query


@dataclass(frozen=True)
class Settings:
    """What plans depend on."""
    scale: float
    seed: int
    quick: bool
    keys: tuple[int, int]
    """The smallest and the largest l_orderkey."""
    stagger: float
    """Seconds between the starts of two streams, for each unit of scale."""
    rate: float = 0.0
    """Queries per second that DuckDB sustains in a closed loop, for `open-loop`."""


@dataclass
class Plan:
    """The queries of a case; the fields are those of a worker's job."""
    queries: list[Query] = field(default_factory=list)
    warmup: list[int] = field(default_factory=list)
    phases: list[dict] = field(default_factory=list)
    goes_on: bool = False
    """Whether phases go on in the process of the one before. If not, none profits from what others have kept."""
    own_constants: int = 0
    """How many queries have constants of their own."""
    _positions: dict[Query, int] = field(default_factory=dict)

    def position(self, query: Query) -> int:
        """The place of a query in the list, to which it is added if it is new."""
        if query not in self._positions:
            self._positions[query] = len(self.queries)
            self.queries.append(query)
        return self._positions[query]

    def warm(self, warmup: Sequence[Query]) -> None:
        self.warmup += [self.position(query) for query in warmup]

    def phase(self, name: str, streams: Sequence[Sequence[Query]], starts: Sequence[float] | None = None, *,
              alone: bool = False, months: int = 0) -> None:
        """Streams of queries; each stream begins at its time and runs its queries one after another.

        `alone`: no query takes results of another. `months`: so many files of the dashboard are there."""
        self.phases.append({"name": name, "alone": alone, "months": months, "streams": [
            [[start if index == 0 else None, self.position(query)] for index, query in enumerate(stream)]
            for stream, start in zip(streams, starts or [0.0] * len(streams))]})

    def jobs(self) -> list[dict]:
        """What is run, each by a process of its own."""
        listed = [{"name": query.name, "sql": query.sql} for query in self.queries]
        parts = [self.phases] if self.goes_on else [[phase] for phase in self.phases]
        return [{"queries": listed, "warmup": self.warmup, "phases": phases} for phases in parts]
