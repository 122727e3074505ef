"""ClientTrafficPolicies of gateways: which one is in force at each listener, and which have lost.

A policy for a listener by its `sectionName` precedes one for the whole Gateway, and an older policy a younger
one. No fields are merged: the first policy decides all settings of a listener.

The listeners for plain HTTP at one port share their connections, so the first policy of all of them holds for
all of them. Listeners that the server name in TLS selects have each their own policy, except for the settings
of the port, which count before the proxy knows the server name.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from catalog.relations.gateways.classes import reason_unserved
from catalog.relations.gateways.listeners import listener_verdicts
from catalog.relations.gateways.verdicts import ListenerVerdict
from catalog.store.own_policies import client_traffic_policies_by_gateway
from catalog.store.precedence import age
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.gateway.gateways import ListenerProtocol
from meshwright.mesh.names import Port
from meshwright.mesh.policies.client_traffic import ClientTarget, ClientTrafficPolicy
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.problems.spelling import did_you_mean

_SHARED: Final = frozenset({ListenerProtocol.HTTP})
"""Protocols whose listeners at one port share their connections."""


@dataclass(frozen=True, slots=True)
class PortTraffic:
    """Policies of a port: the one of the port itself, and those of its listeners, by ListenerSet and name."""

    port: ClientTrafficPolicy | None
    listeners: Mapping[tuple[PolicyKey | None, str], ClientTrafficPolicy]

    def policy_of(self, verdict: ListenerVerdict) -> ClientTrafficPolicy | None:
        """Return the policy of a listener of this port."""
        return self.listeners.get((verdict.listener_set, verdict.listener.name))


@dataclass(frozen=True, slots=True)
class MissingTarget:
    """A target of a policy that does not exist, with the reason."""

    field: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class LostTarget:
    """A part of a policy's target where another policy is in force; `at` is in words."""

    field: str
    at: str
    by: PolicyKey
    why: str


@derived
def client_traffic(view: View, gateway: PolicyKey) -> Mapping[Port, PortTraffic]:
    """Return the policies in force at the ports of a gateway with listeners in force."""
    named = client_traffic_policies_by_gateway(view).lookup(gateway)
    # Without a policy the listeners are not read, so their changes concern nothing here.
    if not named:
        return MappingProxyType({})
    by_port: dict[Port, list[ListenerVerdict]] = {}
    for verdict in listener_verdicts(view, gateway):
        if verdict.in_force:
            by_port.setdefault(verdict.listener.port, []).append(verdict)
    policies = tuple(sorted(named, key=_age))
    return {port: _at_port(gateway, policies, verdicts) for port, verdicts in by_port.items()}


def missing_targets(view: View, policy: ClientTrafficPolicy) -> Iterator[MissingTarget]:
    """Yield the targets of a policy that do not exist."""
    for index, target in enumerate(policy.targets):
        gateway = policy.gateway_of(target)
        if why := reason_unserved(view, gateway):
            yield MissingTarget(f"spec.targetRefs[{index}].name", target.gateway, f"Gateway {gateway} {why}")
            continue
        names = [found.listener.name for found in _own_listeners(view, gateway)]
        if target.section and target.section not in names:
            near = did_you_mean(target.section, names)
            why = f"Gateway {gateway} has no listener {target.section}{near}"
            yield MissingTarget(f"spec.targetRefs[{index}].sectionName", target.section, why)


def overruled(view: View, policy: ClientTrafficPolicy) -> Iterator[LostTarget]:
    """Yield where another policy is in force, although this policy names the Gateway or listener as well."""
    for index, target in enumerate(policy.targets):
        gateway = policy.gateway_of(target)
        field = f"spec.targetRefs[{index}]"
        rivals = [
            other
            for other in client_traffic_policies_by_gateway(view).lookup(gateway)
            if target in other.targets
        ]
        if rivals and (first := min(rivals, key=_age)).key != policy.key:
            yield LostTarget(field, "", first.key, "it is older or first by name")
        elif target.section:
            yield from _overruled_at_port(view, policy, target, field)


def policy_at(view: View, gateway: PolicyKey, verdict: ListenerVerdict) -> ClientTrafficPolicy | None:
    """Return the policy in force at a listener of a gateway."""
    at_port = client_traffic(view, gateway).get(verdict.listener.port)
    return None if at_port is None else at_port.policy_of(verdict)


def _overruled_at_port(
    view: View, policy: ClientTrafficPolicy, target: ClientTarget, field: str
) -> Iterator[LostTarget]:
    gateway = policy.gateway_of(target)
    for verdict in _own_listeners(view, gateway):
        listener = verdict.listener
        at_port = client_traffic(view, gateway).get(listener.port)
        if listener.name != target.section or not verdict.in_force or at_port is None:
            continue
        first, other = at_port.policy_of(verdict), at_port.port
        # A policy that has lost the whole port is not named a second time for the settings of the port.
        if first is not None and first.key != policy.key:
            why = f"listeners for plain HTTP share port {listener.port}, and it is older or first by name"
            yield LostTarget(field, f" at port {listener.port}", first.key, why)
        elif other is not None and other.port != policy.port:
            why = "all listeners of a port share these settings, and it is older or first by name"
            at = f" in connections.bufferSize and clientAddress.proxyProtocol at port {listener.port}"
            yield LostTarget(field, at, other.key, why)


def _own_listeners(view: View, gateway: PolicyKey) -> Iterator[ListenerVerdict]:
    """Yield the listeners that the sectionName of a target may name: those of the Gateway itself."""
    return (found for found in listener_verdicts(view, gateway) if found.listener_set is None)


def _at_port(
    gateway: PolicyKey, policies: tuple[ClientTrafficPolicy, ...], verdicts: list[ListenerVerdict]
) -> PortTraffic:
    found = {(it.listener_set, it.listener.name): _of_listener(gateway, policies, it) for it in verdicts}
    sections = [policy for policy, is_section in found.values() if policy is not None and is_section]
    others = [policy for policy, _ in found.values() if policy is not None]
    first = _first(sections) or _first(others)
    # Listeners of one protocol share a port, so the first one has the protocol of all.
    if verdicts[0].listener.protocol in _SHARED and first is not None:
        return PortTraffic(first, dict.fromkeys(found, first))
    return PortTraffic(first, {name: policy for name, (policy, _) in found.items() if policy is not None})


def _of_listener(
    gateway: PolicyKey, policies: tuple[ClientTrafficPolicy, ...], verdict: ListenerVerdict
) -> tuple[ClientTrafficPolicy | None, bool]:
    """Return the first policy of a listener by itself, and whether the policy names the listener."""
    own = ClientTarget(gateway.name, verdict.listener.name)
    # A listener of a ListenerSet may have the name of one of the Gateway, and is not meant by it.
    if verdict.listener_set is None:
        for policy in policies:
            if own in policy.targets:
                return policy, True
    whole = ClientTarget(gateway.name)
    return next((policy for policy in policies if whole in policy.targets), None), False


def _first(policies: Iterable[ClientTrafficPolicy]) -> ClientTrafficPolicy | None:
    return min(policies, key=_age, default=None)


def _age(policy: ClientTrafficPolicy) -> tuple[bool, str, PolicyKey]:
    return (*age(policy.created), policy.key)
