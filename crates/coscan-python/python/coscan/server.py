"""Servers in this process."""

from types import TracebackType
from typing import Any

from coscan import _native


class Server:
    """A server on the tables of a session, for clients of the PostgreSQL protocol and of Arrow Flight SQL, and for browsers.

    Their queries share reads, decoding, partial aggregates and memory with those of the session. `Session.serve()` makes it. It runs until
    `stop()`, the end of a `with` statement, or until its session is closed or freed.
    """

    def __init__(self, native: _native.Server) -> None:
        self._native = native
        self.postgres, self.flight, self.http = native.addresses

    @property
    def url(self) -> str:
        """The URL for clients of the PostgreSQL protocol, such as psycopg. SQLAlchemy takes it after `postgresql://` is replaced by
        `postgresql+psycopg://`. With `users_file`, put a user and a password in place of `anyone`.
        """
        return f"postgresql://anyone@{self._listens('postgres', self.postgres)}/coscan"

    def dashboard(self, width: "str | int" = "100%", height: "str | int" = 720) -> Any:
        """The page that shows the scheduler at work, as an `IFrame` for a notebook whose browser runs on this machine."""
        try:
            from IPython.display import IFrame
        except ImportError as error:
            raise ImportError("dashboard() needs the package IPython: pip install ipython") from error
        return IFrame(f"http://{self._listens('http', self.http)}/", width, height)

    @property
    def is_running(self) -> bool:
        """Whether it has not been stopped."""
        return self._native.is_running

    def stop(self, grace: float = 5.0) -> bool:
        """Stops the server. Queries that still run after `grace` seconds are cancelled. Returns whether there were any."""
        return self._native.stop(grace)

    def _listens(self, name: str, address: "str | None") -> str:
        if address is None:
            raise ValueError(f'the server does not listen for {name}: use session.serve({name}="127.0.0.1:0")')
        return address

    def __enter__(self) -> "Server":
        return self

    def __exit__(
        self, kind: "type[BaseException] | None", error: "BaseException | None", trace: "TracebackType | None"
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        addresses = {"postgres": self.postgres, "flight": self.flight, "http": self.http}
        listens = ", ".join(f"{name} {address}" for name, address in addresses.items() if address)
        return f"<coscan.Server: {listens if self.is_running else 'stopped'}>"
