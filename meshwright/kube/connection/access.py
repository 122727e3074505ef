"""How an API server is reached: where it is, how to know it, and who we are there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Plugin:
    """A program, how it is called, and what it is told of the `cluster`, None where nothing."""

    version: str
    command: str
    arguments: tuple[str, ...] = field(default=(), repr=False)
    environment: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    cluster: Mapping[str, Any] | None = field(default=None, repr=False)
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Server:
    """Where an API server is, and how to know it: `ca` empty trusts what the system trusts.

    `server_name` is the name in its certificate where that is another than the URL's.
    """

    name: str
    url: str
    ca: Path | bytes = b""
    insecure: bool = False
    server_name: str = ""
    proxy: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class User:
    """Who we are, by whatever of these there is; `acting_as` are the headers of whom we stand in for.

    A token's file comes before a token, and a plug-in is asked only where there is nothing else.
    """

    token: str = field(default="", repr=False)
    token_file: Path | None = None
    basic: tuple[str, str] | None = field(default=None, repr=False)
    certificate: Path | bytes = field(default=b"", repr=False)
    key: Path | bytes = field(default=b"", repr=False)
    plugin: Plugin | None = None
    acting_as: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Access:
    """One context of a kubeconfig."""

    server: Server
    user: User
