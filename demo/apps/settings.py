"""What a program is told, by its environment."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True, slots=True)
class AppSettings:
    """A program's settings.

    `name` is what it calls itself, `control` its Unix socket, `listen` where it serves (None for a pure
    client). `bookstore` and `bookwarehouse` are base URLs, `database` is a host and port: the addresses
    of whatever it calls, which it takes for the things themselves. `rate` is rounds per second; `linger`
    is how many seconds it serves on once it is told to end, until everybody knows that it goes; `pod` is
    which one it is of several that have the same name. With `logged` a client prints how each call ended.
    """

    name: str
    control: Path
    listen: tuple[str, int] | None = None
    bookstore: str = ""
    bookwarehouse: str = ""
    database: tuple[str, int] | None = None
    rate: float = 4.0
    linger: float = 0.0
    pod: str = ""
    logged: bool = False

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read APP_NAME, APP_CONTROL, APP_LISTEN, BOOKSTORE_URL, BOOKWAREHOUSE_URL, DATABASE, APP_RATE."""
        return cls(
            name=environment["APP_NAME"],
            control=Path(environment["APP_CONTROL"]),
            listen=_host_port(environment.get("APP_LISTEN", "")),
            bookstore=environment.get("BOOKSTORE_URL", ""),
            bookwarehouse=environment.get("BOOKWAREHOUSE_URL", ""),
            database=_host_port(environment.get("DATABASE", "")),
            rate=float(environment.get("APP_RATE", "4")),
        )


def _host_port(text: str) -> tuple[str, int] | None:
    host, _, port = text.rpartition(":")
    return (host, int(port)) if host else None
