"""Access to an API server: address, CA, and the user's credentials."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Plugin:
    """An exec plug-in: the program, its arguments, and the `cluster` for the plug-in (None: omitted)."""

    version: str
    command: str
    arguments: tuple[str, ...] = field(default=(), repr=False)
    environment: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    cluster: Mapping[str, Any] | None = field(default=None, repr=False)
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Server:
    """The address of an API server. An empty `ca` means the trust store of the system.

    `server_name` is the name in the certificate if it differs from the host of the URL.
    """

    name: str
    url: str
    ca: Path | bytes = b""
    insecure: bool = False
    server_name: str = ""
    proxy: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class User:
    """The credentials, by whichever of these fields is set; `acting_as` are impersonation headers.

    `token_file` takes precedence over `token`, and a plug-in is run only without any other credential.
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
    """One context of a kubeconfig: the API server and the user's credentials."""

    server: Server
    user: User
