"""Clients with access to a Service by TrafficTargets, for checks of denied shares."""

from collections.abc import Collection
from typing import Final

from catalog.lint.budget import Budget
from catalog.lint.lint import Lint
from catalog.lint.templates import answering
from catalog.policy.access import may_call
from catalog.relations.backends.protocols import protocol_of
from catalog.store.smi import targets_by_destination
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.service import ServiceKey, ServicePort

_NAMED: Final = 5
"""Maximum number of clients named in a problem; the number of the others follows."""


def callers_of(
    lint: Lint, key: ServiceKey, budget: Budget, ports: Collection[ServicePort] | None = None
) -> frozenset[ServiceIdentity]:
    """Return the clients with access to any of `ports` of a Service, by default to any port.

    Future Pods of the Service count as well.
    """
    view = lint.view
    places = {
        (identity, number, protocol_of(view, key, port))
        for port in (view.services[key].ports if ports is None else ports)
        for identity, number in answering(lint, key, port)
    }
    identities: set[ServiceIdentity] = set()
    # Sorted, so that a spent budget ends the search at the same place in every run.
    for identity, number, protocol in sorted(places):
        for target in targets_by_destination(view).lookup(identity):
            budget.spend(1 + len(target.sources))
            identities.update(
                source for source in target.sources if may_call(view, source, identity, number, protocol)
            )
    return frozenset(identities)


def named_clients(clients: Collection[ServiceIdentity]) -> str:
    """Return the first clients with commas, and the number of the others."""
    first = sorted(clients)[:_NAMED]
    more = f" and {len(clients) - len(first)} more" if len(clients) > len(first) else ""
    return ", ".join(map(str, first)) + more
