"""Where an API server is and who we are there: found as kubectl and client libraries do, and kept current."""

import asyncio
import base64
import hashlib
import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from meshwright.kube.connection.access import Access, Server, User
from meshwright.kube.connection.exec_plugin import Credential, ask
from meshwright.kube.connection.kubeconfig import access, read
from meshwright.kube.connection.proxies import from_environment, is_url
from meshwright.kube.connection.tls import Material, Stamp, context
from meshwright.kube.errors import ConfigError, Reason

ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a Pod has the token of its ServiceAccount."""

IN_CLUSTER: Final = "in-cluster"
"""What the cluster is called that we run in: it does not know its own name."""

_REST: Final = timedelta(seconds=10)
"""How long a plug-in that failed, or was refused again, is not run anew: many requests wait for it."""


@dataclass(frozen=True, slots=True)
class RequestParameters:
    """What a request is made with; `proxy` and `server_name` are empty where there is none.

    `number` counts the answers of plug-ins: a refusal of older ones is no reason to ask again.
    """

    tls: ssl.SSLContext | None
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    proxy: str = field(default="", repr=False)
    server_name: str = ""
    number: int = 0


class Connection:
    """A server, and who we are there: had anew as it expires, as files change, and when it is refused.

    `made` says where the server is and who we are; it is asked again after a refusal, since kubeconfigs are
    written anew. `clock` gives the time with its zone.
    """

    def __init__(self, made: Callable[[], Access], clock: Callable[[], datetime] | None = None) -> None:
        self._made = made
        self._access = made()
        self._clock = clock or (lambda: datetime.now(UTC))
        self._lock = asyncio.Lock()
        self._credential: Credential | None = None
        self._failure: tuple[ConfigError, datetime] | None = None
        self._refused: datetime | None = None  # when a plug-in's answer was last renounced
        self._number = 0
        self._context: tuple[Material, tuple[Stamp | None, ...], ssl.SSLContext] | None = None

    @property
    def name(self) -> str:
        """The name by which the cluster is known here."""
        return self._access.server.name

    @property
    def server(self) -> str:
        """The server's URL, without a slash at its end."""
        return self._access.server.url

    @property
    def fingerprint(self) -> str:
        """A digest of the server's URL and of what we know it by: of another cluster it is another one."""
        server = self._access.server
        try:
            ca = server.ca.read_bytes() if isinstance(server.ca, Path) else server.ca
        except OSError:
            ca = b""  # whoever asks the server is told of it
        return hashlib.sha256(f"{server.url}\n{server.server_name}\n".encode() + ca).hexdigest()

    async def ready(self) -> RequestParameters:
        """Return what a request is made with now; raise ConfigError."""
        async with self._lock:
            return await self._ready()

    async def refused(self, ready: RequestParameters) -> bool:
        """Take over that the server does not know who we are; say whether there is something else to try."""
        async with self._lock:
            if ready.number == self._number:
                self._renounce()
            again = await self._ready()
            return (again.headers, again.tls) != (ready.headers, ready.tls)

    def _renounce(self) -> None:
        """Ask anew where the server is and who we are; a plug-in after a rest, or if it is another one."""
        now, before = self._clock(), self._access.user.plugin
        self._access = self._made()
        is_rested = self._refused is None or now - self._refused >= _REST
        if is_rested or self._access.user.plugin != before:
            self._credential, self._refused = None, now
            self._number += 1

    async def _ready(self) -> RequestParameters:
        server, user = self._access.server, self._access.user
        proxy = server.proxy or from_environment(server.url, os.environ)
        if not server.url.startswith("https://"):
            return RequestParameters(
                None, (), proxy
            )  # who we are is said to nobody who does not show who he is
        given = await self._given(user)
        certificate, key = (
            (given.certificate, given.key) if given.certificate else (user.certificate, user.key)
        )
        tls = await self._tls(Material(server.ca, certificate, key, server.insecure))
        return RequestParameters(
            tls, (*_headers(user, given.token), *user.acting_as), proxy, server.server_name, self._number
        )

    async def _given(self, user: User) -> Credential:
        """Return what the plug-in gave, asked anew where that has expired; nothing without one."""
        if user.plugin is None or user.token or user.token_file or user.basic or user.certificate:
            return Credential()
        known, now = self._credential, self._clock()
        if known is not None and (known.expires is None or known.expires > now):
            return known
        if self._failure is not None and now - self._failure[1] < _REST:
            raise self._failure[0]
        try:
            self._credential = known = await ask(user.plugin)
        except ConfigError as error:
            self._failure = error, self._clock()
            raise
        self._failure = None
        self._number += 1
        return known

    async def _tls(self, material: Material) -> ssl.SSLContext:
        """Return a context of what the files hold now, or the last one while they do not fit together."""
        stamp, last = material.stamp(), self._context
        if last is not None and (material, stamp) == last[:2]:
            return last[2]
        try:
            made = await asyncio.to_thread(context, material)  # which may read all that the system trusts
        except ConfigError:
            if last is None or last[0] != material:
                raise
            return last[2]
        self._context = (material, stamp, made)
        return made


def found(kubeconfig: Path | None, context: str, account: Path = ACCOUNT) -> Connection:
    """Return the connection to the cluster that is meant; raise ConfigError.

    That is the kubeconfig told, else the cluster that we run in unless a context is told, else the files of
    $KUBECONFIG, else ~/.kube/config.
    """
    if kubeconfig is not None:
        return Connection(lambda: access([read(kubeconfig)], context))
    if not context and os.environ.get("KUBERNETES_SERVICE_HOST") and (account / "token").exists():
        return Connection(lambda: _in_cluster(account, os.environ))
    return Connection(lambda: _of_user(context, os.environ))


def _of_user(context: str, environment: Mapping[str, str]) -> Access:
    named = [Path(each) for each in environment.get("KUBECONFIG", "").split(os.pathsep) if each]
    own = [Path(home) / ".kube" / "config"] if (home := environment.get("HOME")) else []
    files = [each for each in dict.fromkeys(named or own) if each.exists()]
    if not files:
        looked = ", ".join(map(str, named)) or "~/.kube/config"
        raise ConfigError(
            f"there is no kubeconfig: not in a Pod with a ServiceAccount's token, and {looked} is not there; "
            "name one with --kubeconfig"
        )
    return access([read(each) for each in files], context)


def _in_cluster(account: Path, environment: Mapping[str, str]) -> Access:
    host, port = (environment.get(f"KUBERNETES_SERVICE_{each}", "") for each in ("HOST", "PORT"))
    host = f"[{host}]" if ":" in host else host
    url = f"https://{host}:{port or '443'}"
    if not is_url(url):
        raise ConfigError("$KUBERNETES_SERVICE_HOST and _PORT must be the address and port of the API server")
    server = Server(IN_CLUSTER, url, ca=account / "ca.crt")
    return Access(server, User(token_file=account / "token"))


def _headers(user: User, token: str) -> tuple[tuple[str, str], ...]:
    """Return the header that says who we are; a token's file is read each time, since it is replaced."""
    if user.token_file is not None:
        try:
            token = user.token_file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            said = getattr(error, "strerror", None) or "is no text"
            raise ConfigError(f"{user.token_file} cannot be read: {said}", Reason.CREDENTIALS) from error
        if not token:
            raise ConfigError(f"{user.token_file} is empty: must hold a token", Reason.CREDENTIALS)
    token = token or user.token
    if token:
        return (("Authorization", f"Bearer {token}"),)
    if user.basic is not None:
        return (
            ("Authorization", "Basic " + base64.b64encode(":".join(user.basic).encode()).decode("ascii")),
        )
    return ()
