"""What a driver is given to start its proxies' control plane: typed values, and small protocols."""

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
from xds.hooks import Authenticator, Observer
from xds.limits import Limits
from xds.server.tls import TlsIdentity
from xds.stream_status import StreamStatus

DebugAnswer = Callable[[Mapping[str, str]], Awaitable[Mapping[str, object]]]
"""From a query to what a page says, as JSON has it; never a secret.

A `proxy` in the query is that of one who is known, by its common name. Raises NothingThereError.
"""


@dataclass(frozen=True, slots=True)
class KubernetesConfig:
    """How the control plane reaches the Kubernetes API that it runs under."""

    server: str
    token_file: Path
    authority_file: Path


class CertificateManager(Protocol):
    """The service certificates of the mesh."""

    @property
    def certificates(self) -> Mapping[ServiceIdentity, ServiceCertificate]:
        """Return those in force."""
        ...


@dataclass(frozen=True, slots=True)
class AcknowledgedSecrets:
    """What a connected proxy has taken of the secrets in force, and goes by: PEM, empty where it has not.

    `trust_bundle` are the roots by which it verifies its peers, `chain` is what it shows to them.
    """

    node: NodeKey
    trust_bundle: bytes = field(repr=False)
    chain: bytes = field(repr=False)


class DebugHandlers(Protocol):
    """Where a driver adds pages of its own to the debug server; a path is `/debug/` and a word."""

    def page(self, path: str, shows: str, answer: DebugAnswer) -> None:
        """Add a page; `shows` says in a line what it is about."""

    def streams(self, statuses: Callable[[], tuple[StreamStatus, ...]]) -> None:
        """Add the driver's streams to those of all: `/debug/xds`, and each proxy's in `/debug/proxy`."""


@dataclass(frozen=True, slots=True)
class Clients:
    """Who may be served, who is told of it, and what it may cost: the same for every driver.

    `authenticator` knows the ledger and the mesh, and refuses proxies of other drivers. What `observer` is
    told is in the list of proxies, the metrics and the log. `held` says in a word why there is nothing for
    a proxy that was let in, nothing if there is.
    """

    authenticator: Authenticator
    observer: Observer
    limits: Limits
    held: Callable[[NodeKey], str] = lambda _: ""


TappedHere = Callable[[NodeKey, Sequence[TappedRequest]], bool]
"""Takes what a proxy tells of requests to it; says whether anybody watches them."""


def _nobody_watches(node: NodeKey, requests: Sequence[TappedRequest]) -> bool:
    del node, requests
    return False


def _tell_nobody(taken: Callable[[], Iterable[AcknowledgedSecrets]]) -> None:
    """Pass over what proxies have taken."""
    del taken


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """All that a driver's `start` is given.

    `port` 0 lets the system choose. `server_certificate` and `config` are asked whenever the answer is
    needed: both change. `kubernetes` is None outside a cluster. `catalog` has what this driver's own
    translation came to, by proxy, and None for the proxies of others. `secrets` is told how to ask what the
    driver's proxies have taken of secrets: a change of the root waits for them, and where a driver does not
    say it people must give its proxies up by name. Who asks goes through the answer in slices of time.
    `tapped` takes what proxies tell of requests that are watched
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
    secrets: Callable[[Callable[[], Iterable[AcknowledgedSecrets]]], None] = _tell_nobody
    tapped: TappedHere = _nobody_watches
