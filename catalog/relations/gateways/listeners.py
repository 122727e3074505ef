"""Listeners of gateways and their ListenerSets: which are in force, and for which kinds of routes.

Listeners at one port need different host names, and one protocol. HTTPS and TLS may share a port, because the
server name selects the listener; a TCP listener needs a port of its own. All listeners of one object in a
conflict are out of force, because none of them has precedence. Between objects the first one decides: the
Gateway, then the ListenerSets by their age. Other listeners stay in force.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from catalog.relations.gateways.certificates import certificates_of
from catalog.relations.gateways.classes import served_gateway
from catalog.relations.gateways.client_validation import client_authorities
from catalog.relations.gateways.listener_sets import allowed_sets
from catalog.relations.gateways.verdicts import ListenerReason, ListenerVerdict
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.gateway.gateways import Gateway, Listener, ListenerProtocol
from meshwright.mesh.kinds import (
    GATEWAY,
    GATEWAY_TCP_ROUTE,
    GRPC_ROUTE,
    HTTP_ROUTE,
    LISTENER_SET,
    TLS_ROUTE,
    Kind,
)
from meshwright.mesh.names import Port
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

_BY_SERVER_NAME: Final = frozenset({ListenerProtocol.HTTPS, ListenerProtocol.TLS})
"""Protocols of listeners among which the server name in TLS selects one."""


_Standing = tuple[ListenerReason, str]
"""Reason and message: the listener is in force, or in a conflict."""


@dataclass(frozen=True, slots=True)
class _Owner:
    """A Gateway or ListenerSet, with its listeners."""

    kind: Kind
    key: PolicyKey
    listeners: tuple[Listener, ...]


_Earlier = tuple[str, Listener]
"""A listener with precedence, and a description of its owner for the authors of other ListenerSets."""


@derived
def listener_verdicts(view: View, key: PolicyKey) -> tuple[ListenerVerdict, ...]:
    """Return the verdicts about a gateway's listeners, and then about those of its ListenerSets.

    The order is that of precedence. Empty for a foreign gateway.
    """
    gateway = served_gateway(view, key)
    if gateway is None:
        return ()
    owners = (
        _Owner(GATEWAY, key, gateway.listeners),
        *(_Owner(LISTENER_SET, found.key, found.listeners) for found in allowed_sets(view, key)),
    )
    result: list[ListenerVerdict] = []
    earlier: list[_Earlier] = []
    for owner in owners:
        # A listener that has lost is not compared further, so that it takes nothing from other listeners.
        lost = _lost(owner, earlier)
        remaining = tuple(listener for listener in owner.listeners if listener.name not in lost)
        for listener in owner.listeners:
            standing = lost.get(listener.name) or _standing(listener, remaining)
            result.append(_verdict(view, gateway, owner, listener, standing))
        # Authors of different sets may not know each other, so a message never names another set.
        who = f"Gateway {key}" if owner.kind == GATEWAY else f"an older ListenerSet of Gateway {key}"
        earlier += ((who, listener) for listener in remaining)
    return tuple(result)


@derived
def listeners_of_set(view: View, gateway: PolicyKey, key: PolicyKey | None) -> tuple[ListenerVerdict, ...]:
    """Return the verdicts about the listeners of one ListenerSet; with None about the gateway's own.

    Routes read these alone, so an edit of one set concerns the routes of other sets only in a conflict.
    """
    return _by_set(view, gateway).get(key, ())


@derived
def _by_set(view: View, gateway: PolicyKey) -> Mapping[PolicyKey | None, tuple[ListenerVerdict, ...]]:
    result: dict[PolicyKey | None, tuple[ListenerVerdict, ...]] = {}
    for listener_set, verdicts in itertools.groupby(
        listener_verdicts(view, gateway), lambda item: item.listener_set
    ):
        result[listener_set] = tuple(verdicts)
    return result


def _verdict(
    view: View, gateway: Gateway, owner: _Owner, listener: Listener, standing: _Standing
) -> ListenerVerdict:
    own_set = owner.key if owner.kind == LISTENER_SET else None

    def refused(reason: ListenerReason, message: str) -> ListenerVerdict:
        return ListenerVerdict(listener, reason, message, listener_set=own_set)

    if listener.dropped:
        return refused(ListenerReason.UNSUPPORTED_VALUE, f"Dropped Listener: {listener.dropped}")
    fitting = KINDS.get(listener.protocol)
    if fitting is None:
        served = ", ".join(sorted(KINDS))
        near = did_you_mean(listener.protocol, KINDS)
        message = (
            f"protocol {listener.protocol} is not served{near}; listeners may have the protocol {served}"
        )
        return refused(ListenerReason.UNSUPPORTED_PROTOCOL, message)
    if listener.ends_tls and (dropped := gateway.tls.frontend.dropped):
        message = f"the validation of client certificates cannot be read: {dropped}"
        return refused(ListenerReason.UNSUPPORTED_VALUE, message)
    asked = listener.allowed.kinds
    kinds = tuple(kind for kind in asked if kind in fitting) if asked else fitting
    unknown = tuple(kind for kind in asked if kind not in fitting)
    # A listener without a certificate is accepted too: only its references are not resolved.
    verdict = ListenerVerdict(listener, *standing, kinds, unknown, listener_set=own_set)
    return _with_tls(view, gateway, owner, verdict) if listener.ends_tls else verdict


def _with_tls(view: View, gateway: Gateway, owner: _Owner, verdict: ListenerVerdict) -> ListenerVerdict:
    """Return the verdict about a listener that ends TLS, with its certificates and those of its clients."""
    shown, broken = certificates_of(view, owner.kind, owner.key.namespace, verdict.listener)
    clients = client_authorities(view, gateway.key, verdict.listener.port)
    found = replace(verdict, certificates=shown, broken=broken, clients=clients)
    if not verdict.accepted:
        return found
    if clients is not None and not clients.pem:
        # In the insecure fallback too: the specification has one rule for both modes.
        reasons = "; ".join(item.message for item in clients.broken)
        message = f"the listener is out of force, because it cannot validate its clients: {reasons}"
        return replace(found, reason=ListenerReason.NO_VALID_CA_CERTIFICATE, message=message)
    if not shown:
        reasons = "; ".join(item.message for item in broken)
        message = f"the listener is out of force, because it lacks a certificate: {reasons}"
        return replace(found, message=message)
    return found


def _lost(owner: _Owner, earlier: Iterable[_Earlier]) -> dict[str, _Standing]:
    """Return the listeners of a set, by name, that conflict with listeners with precedence."""
    # Sets of many owners may share a gateway, so listeners are compared with those of their port alone.
    at_port: dict[Port, list[_Earlier]] = {}
    for who, listener in earlier:
        at_port.setdefault(listener.port, []).append((who, listener))
    return {
        listener.name: conflict
        for listener in owner.listeners
        if (
            conflict := _conflict(
                listener, [(f"a listener of {who}", other) for who, other in at_port.get(listener.port, ())]
            )
        )
    }


def _standing(listener: Listener, together: tuple[Listener, ...]) -> _Standing:
    """Return whether a listener is in force beside the others of its Gateway or ListenerSet."""
    others = [
        (f"listener {other.name}", other)
        for other in together
        if other.port == listener.port and other.name != listener.name
    ]
    accepted = ListenerReason.ACCEPTED, f"the listener is in force at port {listener.port}"
    return _conflict(listener, others) or accepted


def _conflict(listener: Listener, others: Sequence[tuple[str, Listener]]) -> _Standing | None:
    """Return the conflict of a listener with others at its port, each with a description."""
    for who, other in others:
        if not {other.protocol, listener.protocol} <= _BY_SERVER_NAME and other.protocol != listener.protocol:
            message = f"{who} has protocol {other.protocol} at the same port {listener.port}"
            return ListenerReason.PROTOCOL_CONFLICT, message
        if listener.protocol == ListenerProtocol.TCP:
            # Connections have no host name by which a proxy could choose between two listeners.
            message = f"{who} has the same port {listener.port}; a TCP listener needs its own"
            return ListenerReason.PROTOCOL_CONFLICT, message
    for who, other in others:
        if other.hostname == listener.hostname:
            shown = listener.hostname or "all host names"
            message = f"{who} has the same port {listener.port} and host name ({shown})"
            return ListenerReason.HOSTNAME_CONFLICT, message
    return None
