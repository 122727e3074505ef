"""Settings of a demo program, read from its environment."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True, slots=True)
class AppSettings:
    """Settings of a program.

    `name` is the program's name in requests and responses, `control` the path of its Unix socket, and
    `listen` its address and port (None for a pure client). `bookstore` and `bookwarehouse` are base URLs, and
    `database` is a host and port. The program uses them as plain addresses, and does not see the proxies
    between. `rate` is in rounds per second. `linger` is the time in seconds to serve after SIGTERM, until all
    clients know that the program ends. `pod` distinguishes Pods with the same name. With `logged` a client
    prints the outcome of each call.
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
        """Read APP_NAME, APP_CONTROL, APP_LISTEN, BOOKSTORE_URL, BOOKWAREHOUSE_URL, DATABASE and APP_RATE."""
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
