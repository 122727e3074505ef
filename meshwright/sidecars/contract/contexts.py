"""Inputs of a driver's `start`: typed values and small protocols."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from certs.keys.material import ServiceCertificate
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.tap import TappedRequest
from meshwright.sidecars.contract.events import Events
from meshwright.sidecars.contract.lifetime import Lifetime
from xds.cache import NodeKey, Snapshots
from xds.hooks import Authenticator, Observer, Peer, Prepare
from xds.limits import Limits
from xds.server.tls import TlsIdentity
from xds.stream_status import StreamStatus

DebugAnswer = Callable[[Mapping[str, str]], Awaitable[Mapping[str, object]]]
"""A function from a query to the content of a debug page, as JSON values without secrets.

A `proxy` in the query is the common name of a known proxy. Raises NothingThereError.
"""


@dataclass(frozen=True, slots=True)
class KubernetesConfig:
    """Access to the Kubernetes API of the cluster in which the control plane runs."""

    server: str
    token_file: Path
    authority_file: Path


class CertificateManager(Protocol):
    """Access to the service certificates of the mesh."""

    @property
    def certificates(self) -> Mapping[ServiceIdentity, ServiceCertificate]:
        """Return the current service certificates, by identity."""
        ...


@dataclass(frozen=True, slots=True)
class AcknowledgedSecrets:
    """The secrets that a connected proxy has accepted and uses, as PEM; empty before the first accepted ones.

    `trust_bundle` verifies the proxy's peers, and `chain` is the proxy's own certificate.
    """

    node: NodeKey
    trust_bundle: bytes = field(repr=False)
    chain: bytes = field(repr=False)


class DebugHandlers(Protocol):
    """Registration of a driver's own debug pages; a path is `/debug/` and a word."""

    def page(self, path: str, shows: str, answer: DebugAnswer) -> None:
        """Add a debug page. `shows` describes the content in one line."""

    def streams(self, statuses: Callable[[], tuple[StreamStatus, ...]]) -> None:
        """Add the driver's streams to the common pages: `/debug/xds`, and `/debug/proxy` for each proxy."""


async def _prepared(peer: Peer) -> None:
    """Return at once: the authenticator has all data, the default of `prepare`."""
    del peer


@dataclass(frozen=True, slots=True)
class Clients:
    """Authentication, observation and limits of clients, the same for every driver.

    `authenticator` uses the ledger and the mesh, and refuses proxies of other drivers. Calls of `observer`
    appear in the list of proxies, the metrics and the log. `held` returns one word for the reason why an
    admitted proxy still waits for configuration, or "" if the proxy has configuration. A driver awaits
    `prepare` before it authenticates a new client, and answers AuthenticationUnavailable with "try again".
    """

    authenticator: Authenticator
    observer: Observer
    limits: Limits
    held: Callable[[NodeKey], str] = lambda _: ""
    prepare: Prepare = _prepared


class MovableStreams(Protocol):
    """Streams of proxies that a driver can move to other servers of the same mesh."""

    @property
    def streams(self) -> int:
        """Return the number of open streams."""
        ...

    def end_oldest(self, count: int, youngest_seconds: float) -> int:
        """End this many streams in order, the oldest first; return how many have ended.

        A stream that is younger than `youngest_seconds` goes on.
        """
        ...


TappedHere = Callable[[NodeKey, Sequence[TappedRequest]], bool]
"""A function for requests that a proxy reports as tapped; the result is whether anyone watches them."""


def _has_no_taps(node: NodeKey, requests: Sequence[TappedRequest]) -> bool:
    del node, requests
    return False


def _ignore_secrets(taken: Callable[[], Iterable[AcknowledgedSecrets]]) -> None:
    """Ignore the driver's function for acknowledged secrets, the default of `secrets`."""
    del taken


def _keep_streams(streams: MovableStreams) -> None:
    """Let all streams stay, the default of `movable`."""
    del streams


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """The inputs of a driver's `start`.

    - `port` 0 lets the system choose a free port.
    - `server_certificate` and `config` are functions, and must be called whenever the value is needed,
      because both change.
    - `kubernetes` is None outside of a cluster.
    - `catalog` has the snapshots from this driver's translation, by proxy; None for proxies of other drivers.
    - `secrets` receives a function for the secrets that the driver's proxies have accepted. A change of the
      root waits for these. Without this function an operator must exclude the driver's proxies by name. The
      caller consumes the result in small slices of time.
    - `movable` receives the driver's streams, so that several servers of one mesh can balance them. Streams
      that are not given to it stay until they end for another reason.
    - `tapped` receives requests that proxies report because a person watches them
      (`catalog.policy.values.inbound.InboundPort.tapped`).
    """

    host: str
    port: int
    server_certificate: Callable[[], TlsIdentity]
    namespace: str
    kubernetes: KubernetesConfig | None
    config: Callable[[], MeshConfig]
    catalog: Snapshots
    certificates: CertificateManager
    clients: Clients
    events: Events
    debug: DebugHandlers
    lifetime: Lifetime
    secrets: Callable[[Callable[[], Iterable[AcknowledgedSecrets]]], None] = _ignore_secrets
    tapped: TappedHere = _has_no_taps
    movable: Callable[[MovableStreams], None] = _keep_streams
