"""Who is asked about requests that policy admits: by ExternalAuthorizations, or else for all of the mesh.

Of several for one port of an identity's workloads one counts: those that name ServiceAccounts go before those
for the whole namespace, then those that name ports; then the oldest (`metadata.creationTimestamp`; those
without one last), then the first by name. One that asks nobody counts as the others do.

None of it is a unit that can be left out (`catalog.policy.units`): without it requests would pass that
somebody was to be asked about.
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


def precedence(found: ExternalAuthorization) -> tuple[bool, bool, bool, str, PolicyKey]:
    """Return the sort key of an ExternalAuthorization among those for one port of an identity's workloads."""
    return (not found.accounts, not found.ports, not found.created, found.created, found.key)


def asked_at(
    view: View, identity: ServiceIdentity, port: Port, protocol: Protocol
) -> ExternalAuthorizer | None:
    """Return who is asked at a port; None for nobody. Where no request is seen, nobody is asked about any."""
    if not protocol.is_http:
        return None
    there = external_authorizations_in(view).found(identity.namespace)
    its = (each for each in there if _is_for(each, identity, port))
    if (found := min(its, key=precedence, default=None)) is not None:
        authorizer = found.at(server_of(view, found))
        return None if authorizer is None else ExternalAuthorizer(authorizer, found.key)
    everywhere = mesh_wide.authorization(view).value()
    return None if everywhere is None else ExternalAuthorizer(everywhere)


def _is_for(each: ExternalAuthorization, identity: ServiceIdentity, port: Port) -> bool:
    of_it = not each.accounts or identity.service_account in each.accounts
    return of_it and (not each.ports or port in each.ports)
