"""Gateways of the Gateway API: classes, gateways with their listeners, and sets of further listeners.

A listener is a port of a gateway's proxies, for one protocol and the host names that fit `hostname`. Routes
attach to listeners of their choice, if the listener allows it, and ListenerSets to a gateway, if the gateway
allows it.
"""

import enum
from dataclasses import dataclass, field
from typing import Final

from meshwright.mesh.kinds import GATEWAY, Kind
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.values.label_selector import LabelSelector

CONTROLLER_NAME: Final = "meshwright.dev/gateway-controller"
"""The `spec.controllerName` of the GatewayClasses whose gateways Meshwright serves."""


AGENT_PORT: Final = 15020
"""Port of the agent's own server, at all addresses of a gateway's machine or Pod."""


class ListenerProtocol(enum.StrEnum):
    """Protocols that the specification names; a listener may have another text as protocol."""

    HTTP = "HTTP"
    HTTPS = "HTTPS"
    TLS = "TLS"
    TCP = "TCP"
    UDP = "UDP"


class TlsMode(enum.StrEnum):
    """Treatment of TLS at a listener: the proxy ends it, or passes it on unread."""

    TERMINATE = "Terminate"
    PASSTHROUGH = "Passthrough"


class RoutesFrom(enum.StrEnum):
    """Namespaces whose routes may attach to a listener, or whose ListenerSets to a gateway."""

    ALL = "All"
    SELECTOR = "Selector"
    SAME = "Same"
    NONE = "None"


@dataclass(frozen=True, slots=True, order=True)
class ObjectReference:
    """Reference to an object such as a Secret; `namespace` is None for that of the referring object."""

    kind: Kind
    name: str
    namespace: Namespace | None = None


@dataclass(frozen=True, slots=True)
class ListenerTls:
    """TLS of a listener: the mode, and the certificates that the proxy shows if it ends TLS."""

    mode: TlsMode = TlsMode.TERMINATE
    certificates: tuple[ObjectReference, ...] = ()


@dataclass(frozen=True, slots=True)
class AllowedRoutes:
    """Routes that may attach: from which namespaces (`selector` is for SELECTOR alone), and of which kinds.

    With SELECTOR and no selector, because none is written or it is invalid, no namespace is selected. Without
    `kinds` these are the kinds that fit the listener's protocol.
    """

    namespaces: RoutesFrom = RoutesFrom.SAME
    selector: LabelSelector | None = None
    kinds: tuple[Kind, ...] = ()


@dataclass(frozen=True, slots=True)
class Listener:
    """A listener of a gateway; an empty `hostname` stands for all names.

    `protocol` is a text, because an unknown one is refused in the status of the listener alone. `dropped` is
    the reason why a listener that the API server has accepted cannot be read; such a listener is not served.
    """

    name: str
    port: Port
    protocol: str
    hostname: str = ""
    tls: ListenerTls | None = None
    allowed: AllowedRoutes = field(default_factory=AllowedRoutes)
    dropped: str = ""

    @property
    def ends_tls(self) -> bool:
        """True if the proxy ends TLS: with HTTPS, and with TLS unless its mode is Passthrough."""
        if self.protocol == ListenerProtocol.HTTPS:
            return True
        passed = self.tls is not None and self.tls.mode is TlsMode.PASSTHROUGH
        return self.protocol == ListenerProtocol.TLS and not passed


IP_ADDRESS: Final = "IPAddress"
HOSTNAME_ADDRESS: Final = "Hostname"
"""Types of addresses that the specification names; there may be others."""


@dataclass(frozen=True, slots=True)
class GatewayAddress:
    """A requested address: its type, `IPAddress`, `Hostname` or another name, and the value, or empty."""

    type: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class Infrastructure:
    """Properties of what is created for a gateway: labels and annotations as sorted pairs, and parameters."""

    labels: tuple[tuple[str, str], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    parameters: ObjectReference | None = None


@dataclass(frozen=True, slots=True)
class AllowedSets:
    """ListenerSets that may attach to a gateway: from which namespaces, and the selector for SELECTOR alone.

    With SELECTOR and no selector, because none is written or it is invalid, no namespace is selected.
    """

    namespaces: RoutesFrom = RoutesFrom.NONE
    selector: LabelSelector | None = None


class ValidationMode(enum.StrEnum):
    """Clients that a validation admits: those with a valid certificate, or all."""

    VALID_ONLY = "AllowValidOnly"
    INSECURE_FALLBACK = "AllowInsecureFallback"


@dataclass(frozen=True, slots=True)
class ClientValidation:
    """Validation of the certificates of clients by CA certificates; `authorities` name ConfigMaps."""

    authorities: tuple[ObjectReference, ...]
    mode: ValidationMode = ValidationMode.VALID_ONLY


@dataclass(frozen=True, slots=True)
class FrontendTls:
    """Validations of clients at the listeners that end TLS: one for single ports, and one for all others.

    None validates nothing. `by_port` has the order in which the ports are written. `dropped` is the reason
    why validations that the API server has accepted cannot be read; no listener ends TLS then.
    """

    default: ClientValidation | None = None
    by_port: tuple[tuple[Port, ClientValidation | None], ...] = ()
    dropped: str = ""

    def at(self, port: Port) -> ClientValidation | None:
        """Return the validation of clients at a port."""
        return dict(self.by_port).get(port, self.default)

    @property
    def is_insecure(self) -> bool:
        """True if any validation admits clients without a valid certificate."""
        found = (self.default, *(validation for _, validation in self.by_port))
        return any(item is not None and item.mode is ValidationMode.INSECURE_FALLBACK for item in found)


@dataclass(frozen=True, slots=True)
class GatewayTls:
    """TLS of a whole gateway: the client certificate is the one that it shows to backends with TLS."""

    client_certificate: ObjectReference | None = None
    frontend: FrontendTls = field(default_factory=FrontendTls)


@dataclass(frozen=True, slots=True)
class Gateway:
    """gateway.networking.k8s.io Gateway: listeners, served by the proxies of the gateway.

    `generation` is `metadata.generation`, 0 if missing, and `created` is `metadata.creationTimestamp` as
    written, or empty; the age decides precedence. `uid` is
    `metadata.uid`, which only a cluster sets. `unused` are the paths of written fields without effect,
    for example `spec.defaultScope`.
    """

    key: PolicyKey
    class_name: str
    listeners: tuple[Listener, ...]
    addresses: tuple[GatewayAddress, ...] = ()
    infrastructure: Infrastructure = field(default_factory=Infrastructure)
    generation: int = 0
    created: str = ""
    uid: str = ""
    unused: tuple[str, ...] = ()
    allowed_sets: AllowedSets = field(default_factory=AllowedSets)
    tls: GatewayTls = field(default_factory=GatewayTls)


@dataclass(frozen=True, slots=True)
class ListenerSet:
    """gateway.networking.k8s.io ListenerSet: further listeners of a gateway, written by other people.

    `parent` is an object of any kind; only a Gateway takes listeners. `generation`, `created` and `unused`
    are as in a Gateway. The age decides precedence among the sets of a gateway.
    """

    key: PolicyKey
    parent: ObjectReference
    listeners: tuple[Listener, ...]
    generation: int = 0
    created: str = ""
    unused: tuple[str, ...] = ()

    @property
    def gateway(self) -> PolicyKey | None:
        """The name of the gateway, which may be missing; None for a parent of another kind."""
        if self.parent.kind != GATEWAY:
            return None
        return PolicyKey(self.parent.namespace or self.key.namespace, self.parent.name)


@dataclass(frozen=True, slots=True)
class GatewayClass:
    """gateway.networking.k8s.io GatewayClass, cluster-wide: the controller of the gateways of a class."""

    name: str
    controller: str
    parameters: ObjectReference | None = None
    generation: int = 0
