"""The current address, credentials and TLS context of an API server, from the same sources as in kubectl."""

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
"""Directory of a Pod's ServiceAccount token."""

IN_CLUSTER: Final = "in-cluster"
"""Name of the cluster in which this program runs, because a cluster does not know its own name."""

_REST: Final = timedelta(seconds=10)
"""Time before a plug-in runs again after a failure or a repeated refusal.

The pause is needed because many requests may wait for the plug-in.
"""


@dataclass(frozen=True, slots=True)
class RequestParameters:
    """The parameters of a request; an empty `proxy` or `server_name` is not used.

    `number` counts the answers of plug-ins, so that a refusal of an older answer does not run the plug-in
    again.
    """

    tls: ssl.SSLContext | None
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    proxy: str = field(default="", repr=False)
    server_name: str = ""
    number: int = 0


class Connection:
    """A server with credentials, which are renewed on expiry, on a change of files, and after a refusal.

    `made` returns the current Access, and is called again after a refusal, because kubeconfigs are rewritten.
    `clock` returns the time with a zone.
    """

    def __init__(self, made: Callable[[], Access], clock: Callable[[], datetime] | None = None) -> None:
        self._made = made
        self._access = made()
        self._clock = clock or (lambda: datetime.now(UTC))
        self._lock = asyncio.Lock()
        self._credential: Credential | None = None
        self._failure: tuple[ConfigError, datetime] | None = None
        self._refused: datetime | None = None  # when a plug-in's answer was last discarded
        self._number = 0
        self._context: tuple[Material, tuple[Stamp | None, ...], ssl.SSLContext] | None = None

    @property
    def name(self) -> str:
        """Return the name of the cluster."""
        return self._access.server.name

    @property
    def server(self) -> str:
        """Return the URL of the API server, without a slash at the end."""
        return self._access.server.url

    @property
    def fingerprint(self) -> str:
        """Return a digest of the server's URL, name and CA, which differs for another cluster."""
        server = self._access.server
        try:
            ca = server.ca.read_bytes() if isinstance(server.ca, Path) else server.ca
        except OSError:
            ca = b""  # a request reports the unreadable file
        return hashlib.sha256(f"{server.url}\n{server.server_name}\n".encode() + ca).hexdigest()

    async def ready(self) -> RequestParameters:
        """Return TLS context, headers and proxy for a request now; raise ConfigError."""
        async with self._lock:
            return await self._ready()

    async def refused(self, ready: RequestParameters) -> bool:
        """Record that the server refused the credentials of a request; return whether others exist now."""
        async with self._lock:
            if ready.number == self._number:
                self._renounce()
            again = await self._ready()
            return (again.headers, again.tls) != (ready.headers, ready.tls)

    def _renounce(self) -> None:
        """Read the kubeconfig again after a 401, and discard the credential from its exec plug-in.

        The credential is discarded at most once per _REST, because a plug-in may be slow. If the kubeconfig
        has another plug-in than before, that plug-in runs at once.
        """
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
            # Credentials are sent only to a server that proves its identity.
            return RequestParameters(None, (), proxy)
        given = await self._plugin_credential(user)
        certificate, key = (
            (given.certificate, given.key) if given.certificate else (user.certificate, user.key)
        )
        tls = await self._tls(Material(server.ca, certificate, key, server.insecure))
        return RequestParameters(
            tls, (*_headers(user, given.token), *user.acting_as), proxy, server.server_name, self._number
        )

    async def _plugin_credential(self, user: User) -> Credential:
        """Return the credential of the user's exec plug-in, renewed if expired; empty without a plug-in."""
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
        """Return a TLS context for the current files, or the last one while the files do not fit together."""
        stamp, last = material.stamp(), self._context
        if last is not None and (material, stamp) == last[:2]:
            return last[2]
        try:
            # In a thread, because reading the trust store of the system takes time.
            made = await asyncio.to_thread(context, material)
        except ConfigError:
            if last is None or last[0] != material:
                raise
            return last[2]
        self._context = (material, stamp, made)
        return made


def find_connection(kubeconfig: Path | None, context: str, account: Path = ACCOUNT) -> Connection:
    """Return the connection to the selected cluster; raise ConfigError.

    The order is: the given kubeconfig, then the cluster in which this program runs (unless a context is
    given), then the files of $KUBECONFIG, then ~/.kube/config.
    """
    if kubeconfig is not None:
        return Connection(lambda: access([read(kubeconfig)], context))
    if not context and os.environ.get("KUBERNETES_SERVICE_HOST") and (account / "token").exists():
        return Connection(lambda: _in_cluster(account, os.environ))
    return Connection(lambda: _of_user(context, os.environ))


def _of_user(context: str, environment: Mapping[str, str]) -> Access:
    named = [Path(item) for item in environment.get("KUBECONFIG", "").split(os.pathsep) if item]
    own = [Path(home) / ".kube" / "config"] if (home := environment.get("HOME")) else []
    files = [path for path in dict.fromkeys(named or own) if path.exists()]
    if not files:
        looked = ", ".join(map(str, named)) or "~/.kube/config"
        raise ConfigError(
            "no kubeconfig was found: this process is not in a Pod with a ServiceAccount token, and "
            f"{looked} does not exist; name one with --kubeconfig"
        )
    return access([read(file) for file in files], context)


def _in_cluster(account: Path, environment: Mapping[str, str]) -> Access:
    host, port = (environment.get(f"KUBERNETES_SERVICE_{item}", "") for item in ("HOST", "PORT"))
    host = f"[{host}]" if ":" in host else host
    url = f"https://{host}:{port or '443'}"
    if not is_url(url):
        raise ConfigError("$KUBERNETES_SERVICE_HOST and _PORT must be the address and port of the API server")
    server = Server(IN_CLUSTER, url, ca=account / "ca.crt")
    return Access(server, User(token_file=account / "token"))


def _headers(user: User, token: str) -> tuple[tuple[str, str], ...]:
    """Return the Authorization header. A token file is read each time, because the kubelet rewrites it."""
    if user.token_file is not None:
        try:
            token = user.token_file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "is not UTF-8 text"
            raise ConfigError(f"{user.token_file} cannot be read: {reason}", Reason.CREDENTIALS) from error
        if not token:
            raise ConfigError(f"{user.token_file} is empty: must contain a token", Reason.CREDENTIALS)
    token = token or user.token
    if token:
        return (("Authorization", f"Bearer {token}"),)
    if user.basic is not None:
        return (
            ("Authorization", "Basic " + base64.b64encode(":".join(user.basic).encode()).decode("ascii")),
        )
    return ()
