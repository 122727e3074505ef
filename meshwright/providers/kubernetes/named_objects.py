"""Objects that are watched by name, because a gateway of the mesh, its ListenerSet or a policy names them."""

from collections.abc import Iterator, Mapping
from typing import Final

from meshwright.mesh.gateway.backend_tls import BackendTLSPolicy
from meshwright.mesh.gateway.gateways import (
    CONTROLLER_NAME,
    Gateway,
    GatewayClass,
    ListenerSet,
    RoutesFrom,
)
from meshwright.mesh.kinds import BACKEND_TLS_POLICY, CONFIG_MAP, GATEWAY, GATEWAY_CLASS, LISTENER_SET, SECRET
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.policies.smi import PolicyKey

NAMED_IN: Final = frozenset({BACKEND_TLS_POLICY, GATEWAY, GATEWAY_CLASS, LISTENER_SET})
"""Kinds whose objects decide which Secrets and ConfigMaps are watched."""

Names = frozenset[ObjectKey]


def objects_named(in_force: Mapping[ObjectKey, SourcedObject]) -> Names:
    """Return the Secrets and ConfigMaps that gateways of Meshwright's classes name.

    Their ListenerSets count if the gateway may allow them, and BackendTLSPolicies, which name ConfigMaps of
    their own namespaces, if there is a gateway. Labels of namespaces and ReferenceGrants are not
    considered: they decide whether a gateway uses an object, and the permission of the API server
    decides whether it is read.
    """
    found = [sourced.value for key, sourced in in_force.items() if key.kind in NAMED_IN]
    classes = {
        value.name
        for value in found
        if isinstance(value, GatewayClass) and value.controller == CONTROLLER_NAME
    }
    gateways: dict[PolicyKey, Gateway] = {
        value.key: value for value in found if isinstance(value, Gateway) and value.class_name in classes
    }
    sets = [value for value in found if isinstance(value, ListenerSet) and _may_attach(value, gateways)]
    owners: list[Gateway | ListenerSet] = [*gateways.values(), *sets]
    policies = [value for value in found if isinstance(value, BackendTLSPolicy)] if gateways else []
    return frozenset(
        (
            *(name for owner in owners for name in _certificates(owner)),
            *(name for policy in policies for name in _authorities(policy)),
        )
    )


def _may_attach(found: ListenerSet, gateways: Mapping[PolicyKey, Gateway]) -> bool:
    gateway = None if found.gateway is None else gateways.get(found.gateway)
    if gateway is None:
        return False
    match gateway.allowed_sets.namespaces:
        case RoutesFrom.NONE:
            return False
        case RoutesFrom.SAME:
            return found.key.namespace == gateway.key.namespace
        case RoutesFrom.ALL | RoutesFrom.SELECTOR:
            return True


def _certificates(owner: Gateway | ListenerSet) -> Iterator[ObjectKey]:
    named = [item for at in owner.listeners if at.tls is not None for item in at.tls.certificates]
    if isinstance(owner, Gateway) and owner.tls.client_certificate is not None:
        named.append(owner.tls.client_certificate)
    for reference in named:
        if reference.kind == SECRET:
            yield ObjectKey(SECRET, reference.namespace or owner.key.namespace, reference.name)
    if isinstance(owner, Gateway):
        yield from _client_authorities(owner)


def _client_authorities(owner: Gateway) -> Iterator[ObjectKey]:
    """Yield the ConfigMaps with CA certificates for the clients of a gateway."""
    frontend = owner.tls.frontend
    for validation in (frontend.default, *(found for _, found in frontend.by_port)):
        for reference in () if validation is None else validation.authorities:
            if reference.kind == CONFIG_MAP:
                yield ObjectKey(CONFIG_MAP, reference.namespace or owner.key.namespace, reference.name)


def _authorities(policy: BackendTLSPolicy) -> Iterator[ObjectKey]:
    for reference in policy.authorities:
        if reference.kind == CONFIG_MAP:
            yield ObjectKey(CONFIG_MAP, policy.key.namespace, reference.name)
