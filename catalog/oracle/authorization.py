"""External authorization of admitted requests: a part of the oracle, see `catalog.oracle.decide`.

Written from docs/policy/traffic.md. The authorizer's answer is unknown here, and can only deny. One
ExternalAuthorization counts for a port of a workload: one with the ServiceAccount before one for the
namespace, then one with the port, then the oldest, or else the first by name. Without any, the MeshConfig's
counts. Ports without HTTP have no authorization.
"""

from catalog.oracle.targets import Place
from catalog.store.osm import server_of
from catalog.store.own_policies import external_authorizations
from catalog.store.view import View
from meshwright.mesh.policies.authorization import Authorizer, ExternalAuthorization


def counting(view: View, place: tuple[Place, bool]) -> ExternalAuthorization | None:
    """Return the ExternalAuthorization that applies at a place, even one that turns authorization off."""
    where, is_http = place
    if not is_http:
        return None
    table, account = external_authorizations(view), where.identity.service_account
    there = [table[key] for key in table if key.namespace == where.identity.namespace]
    for named_account, named_port in ((True, True), (True, False), (False, True), (False, False)):
        authorizations = [
            authorization
            for authorization in there
            if (account in authorization.accounts if named_account else not authorization.accounts)
            and (where.port in authorization.ports if named_port else not authorization.ports)
        ]
        if authorizations:
            return min(
                authorizations,
                key=lambda authorization: (
                    authorization.created == "",
                    authorization.created,
                    authorization.key,
                ),
            )
    return None


def authorizer_at(view: View, place: tuple[Place, bool]) -> Authorizer | None:
    """Return the external authorizer of requests at a place, or `None`."""
    if (authorization := counting(view, place)) is not None:
        return authorization.at(server_of(view, authorization))
    return view.config.authorization if place[1] else None
