"""External authorization of admitted requests, by ExternalAuthorization objects or for the whole mesh.

Of several objects for one port of an identity's workloads one counts: those with ServiceAccounts before those
for the whole namespace, then those with ports, then the oldest (`metadata.creationTimestamp`; those without
one last), then the first by name. An object that turns authorization off counts like the others.

External authorization is not a unit that can be excluded (`catalog.policy.units`), because requests would
pass without the required check.
"""

from catalog.policy.values.inbound import ExternalAuthorizer
from catalog.store import mesh_wide
from catalog.store.osm import server_of
from catalog.store.own_policies import external_authorizations_in
from catalog.store.view import View
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Port
from meshwright.mesh.policies.authorization import ExternalAuthorization
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import Protocol


def precedence(authorization: ExternalAuthorization) -> tuple[bool, bool, bool, str, PolicyKey]:
    """Return the sort key of an ExternalAuthorization for one port of an identity's workloads."""
    return (
        not authorization.accounts,
        not authorization.ports,
        not authorization.created,
        authorization.created,
        authorization.key,
    )


def port_authorizer(
    view: View, identity: ServiceIdentity, port: Port, protocol: Protocol
) -> ExternalAuthorizer | None:
    """Return the authorizer at a port, or `None`.

    Always `None` on ports without HTTP, which have no requests.
    """
    if not protocol.is_http:
        return None
    there = external_authorizations_in(view).lookup(identity.namespace)
    its = (authorization for authorization in there if _is_for(authorization, identity, port))
    if (authorization := min(its, key=precedence, default=None)) is not None:
        authorizer = authorization.at(server_of(view, authorization))
        return None if authorizer is None else ExternalAuthorizer(authorizer, authorization.key)
    everywhere = mesh_wide.authorization(view).value()
    return None if everywhere is None else ExternalAuthorizer(everywhere)


def _is_for(authorization: ExternalAuthorization, identity: ServiceIdentity, port: Port) -> bool:
    of_it = not authorization.accounts or identity.service_account in authorization.accounts
    return of_it and (not authorization.ports or port in authorization.ports)
