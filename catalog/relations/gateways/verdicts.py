"""Verdicts about gateways, with reasons in the words of the specification."""

import enum
from dataclasses import dataclass, field

from catalog.relations.gateways.ca_certificates import BrokenCa
from meshwright.mesh.gateway.gateways import Listener, ValidationMode
from meshwright.mesh.gateway.references import ParentRef
from meshwright.mesh.kinds import Kind
from meshwright.mesh.policies.smi import PolicyKey


class ListenerReason(enum.StrEnum):
    """Reasons of a listener's condition `Accepted`; without ACCEPTED the listener is out of force.

    A listener in a conflict also has the condition `Conflicted`, with the same reason.
    """

    ACCEPTED = "Accepted"
    UNSUPPORTED_PROTOCOL = "UnsupportedProtocol"
    UNSUPPORTED_VALUE = "UnsupportedValue"
    PROTOCOL_CONFLICT = "ProtocolConflict"
    HOSTNAME_CONFLICT = "HostnameConflict"
    NO_VALID_CA_CERTIFICATE = "NoValidCACertificate"


class CertificateReason(enum.StrEnum):
    """Reasons of a condition `ResolvedRefs` for a certificate out of force.

    The certificate is one of a listener, or with INVALID_CLIENT_CERTIFICATE_REF the gateway's for backends.
    """

    INVALID_CERTIFICATE_REF = "InvalidCertificateRef"
    INVALID_CLIENT_CERTIFICATE_REF = "InvalidClientCertificateRef"
    REF_NOT_PERMITTED = "RefNotPermitted"


@dataclass(frozen=True, slots=True)
class BrokenCertificate:
    """A reference of a listener or gateway to a certificate out of force, and why; without secret content.

    `secret` is the named Secret if it does not exist, or lacks a ReferenceGrant.
    """

    reason: CertificateReason
    message: str
    # The message names the Secret, so it is no difference of its own.
    secret: PolicyKey | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ClientAuthorities:
    """CA certificates (PEM) by which a listener validates its clients, and the references without any.

    Without any CA certificate the listener is out of force, because it would admit no client, or every one.
    """

    mode: ValidationMode
    pem: str = field(default="", repr=False)
    broken: tuple[BrokenCa, ...] = ()


@dataclass(frozen=True, slots=True)
class ListenerVerdict:
    """Verdict about a listener: acceptance, and the `kinds` of fitting routes.

    `unknown_kinds` are kinds of `allowedRoutes` without routes for the protocol; the condition
    `ResolvedRefs` is False then, with the reason `InvalidRouteKinds`. `certificates` are the names of the
    Secrets of a listener which ends TLS, and `broken` the references without a certificate to show.
    `clients` are the CA certificates for its clients; None if these need no certificate. `listener_set` is
    the ListenerSet with the listener; None for a listener of the Gateway itself.
    """

    listener: Listener
    reason: ListenerReason
    message: str
    kinds: tuple[Kind, ...] = ()
    unknown_kinds: tuple[Kind, ...] = ()
    certificates: tuple[PolicyKey, ...] = ()
    broken: tuple[BrokenCertificate, ...] = ()
    listener_set: PolicyKey | None = None
    clients: ClientAuthorities | None = None

    @property
    def accepted(self) -> bool:
        """True if the listener can be in force beside the others of its gateway."""
        return self.reason is ListenerReason.ACCEPTED

    @property
    def in_force(self) -> bool:
        """True if the listener serves clients; without any certificate the listener cannot end TLS."""
        return self.accepted and (not self.listener.ends_tls or bool(self.certificates))


class AttachedReason(enum.StrEnum):
    """Reasons of a route's condition `Accepted` for a gateway as parent."""

    ACCEPTED = "Accepted"
    NO_MATCHING_PARENT = "NoMatchingParent"
    NOT_ALLOWED_BY_LISTENERS = "NotAllowedByListeners"
    NO_MATCHING_LISTENER_HOSTNAME = "NoMatchingListenerHostname"
    UNSUPPORTED_VALUE = "UnsupportedValue"


@dataclass(frozen=True, slots=True)
class GatewayVerdict:
    """Verdict about one parent of a route: `parent` as written, and the gateway.

    If the parent is a ListenerSet, `listener_set` is its name, and `gateway` is the gateway of the set.
    `listeners` are the names of the listeners of the parent to which the route is attached, in their order;
    empty unless accepted. A route may be attached to a listener out of force.
    """

    parent: ParentRef
    gateway: PolicyKey
    reason: AttachedReason
    message: str
    listeners: tuple[str, ...] = ()
    listener_set: PolicyKey | None = None

    @property
    def accepted(self) -> bool:
        """True if the route is attached to a listener of this parent."""
        return self.reason is AttachedReason.ACCEPTED
