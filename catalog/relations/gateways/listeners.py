"""Listeners of gateways: which are in force, and which kinds of routes may attach to them.

Listeners at one port need different host names, and one protocol. HTTPS and TLS may share a port, because the
server name selects the listener; a TCP listener needs a port of its own. All listeners in a conflict are out
of force, because none of them has precedence. Other listeners of the gateway stay in force.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from catalog.relations.gateways.certificates import certificates_of
from catalog.relations.gateways.classes import served_gateway
from catalog.relations.gateways.verdicts import ListenerReason, ListenerVerdict
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.gateway.gateways import Gateway, Listener, ListenerProtocol
from meshwright.mesh.kinds import GATEWAY_TCP_ROUTE, GRPC_ROUTE, HTTP_ROUTE, TLS_ROUTE, Kind
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.problems.spelling import did_you_mean

KINDS: Final[Mapping[str, tuple[Kind, ...]]] = MappingProxyType(
    {
        ListenerProtocol.HTTP: (HTTP_ROUTE, GRPC_ROUTE),
        ListenerProtocol.HTTPS: (HTTP_ROUTE, GRPC_ROUTE),
        ListenerProtocol.TLS: (TLS_ROUTE,),
        ListenerProtocol.TCP: (GATEWAY_TCP_ROUTE,),
    }
)
"""Served protocols of listeners, with the kinds of fitting routes."""

CLIENT_CERTIFICATES: Final = "spec.tls.frontend"
"""Field of a Gateway without support, so listeners would admit clients without certificates."""

_BY_SERVER_NAME: Final = frozenset({ListenerProtocol.HTTPS, ListenerProtocol.TLS})
"""Protocols of listeners among which the server name in TLS selects one."""


@derived
def listener_verdicts(view: View, key: PolicyKey) -> tuple[ListenerVerdict, ...]:
    """Return the verdicts about a gateway's listeners, in the gateway's order; empty for a foreign one."""
    gateway = served_gateway(view, key)
    if gateway is None:
        return ()
    return tuple(_verdict(view, gateway, listener) for listener in gateway.listeners)


def _verdict(view: View, gateway: Gateway, listener: Listener) -> ListenerVerdict:
    if listener.dropped:
        message = f"Dropped Listener: {listener.dropped}"
        return ListenerVerdict(listener, ListenerReason.UNSUPPORTED_VALUE, message)
    fitting = KINDS.get(listener.protocol)
    if fitting is None:
        served = ", ".join(sorted(KINDS))
        near = did_you_mean(listener.protocol, KINDS)
        message = (
            f"protocol {listener.protocol} is not served{near}; listeners may have the protocol {served}"
        )
        return ListenerVerdict(listener, ListenerReason.UNSUPPORTED_PROTOCOL, message)
    if listener.ends_tls and CLIENT_CERTIFICATES in gateway.unused:
        message = f"{CLIENT_CERTIFICATES} asks clients for certificates, which Meshwright does not check"
        return ListenerVerdict(listener, ListenerReason.UNSUPPORTED_VALUE, message)
    asked = listener.allowed.kinds
    kinds = tuple(kind for kind in asked if kind in fitting) if asked else fitting
    unknown = tuple(kind for kind in asked if kind not in fitting)
    reason, message = _standing(listener, gateway.listeners)
    # A listener without a certificate is accepted too: only its references are not resolved.
    verdict = ListenerVerdict(listener, reason, message, kinds, unknown)
    if not listener.ends_tls:
        return verdict
    shown, broken = certificates_of(view, gateway.key.namespace, listener)
    if verdict.accepted and not shown:
        reasons = "; ".join(item.message for item in broken)
        message = f"the listener is out of force, because it lacks a certificate: {reasons}"
    return replace(verdict, message=message, certificates=shown, broken=broken)


def _standing(listener: Listener, together: tuple[Listener, ...]) -> tuple[ListenerReason, str]:
    """Return whether a listener is in force beside the others at its port."""
    others = [other for other in together if other.port == listener.port and other.name != listener.name]
    for other in others:
        if not {other.protocol, listener.protocol} <= _BY_SERVER_NAME and other.protocol != listener.protocol:
            message = f"listener {other.name} has protocol {other.protocol} at the same port {listener.port}"
            return ListenerReason.PROTOCOL_CONFLICT, message
        if listener.protocol == ListenerProtocol.TCP:
            # Connections have no host name by which a proxy could choose between two listeners.
            message = f"listener {other.name} has the same port {listener.port}; a TCP listener needs its own"
            return ListenerReason.PROTOCOL_CONFLICT, message
    for other in others:
        if other.hostname == listener.hostname:
            shown = listener.hostname or "all host names"
            message = f"listener {other.name} has the same port {listener.port} and host name ({shown})"
            return ListenerReason.HOSTNAME_CONFLICT, message
    return ListenerReason.ACCEPTED, f"the listener is in force at port {listener.port}"
