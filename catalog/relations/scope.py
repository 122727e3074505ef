"""Narrowing: a namespace or a workload says which services its proxies are to be configured with.

It takes away from what policy shows, never adds to it, and guards nothing: whom a server lets in is decided
at the server. It speaks of services that are called; what stands behind one, the backends of its splits
among it, comes along.
"""

from typing import Final

from catalog.relations.groups import ProxyGroup
from catalog.store.view import IN_VIEW, View, namespaces
from meshwright.mesh.service import Scope, ServiceKey

_of_namespace: Final = IN_VIEW.column(namespaces, lambda found: found.scope)
"""What a namespace narrows its workloads' proxies to."""


def scope_of(view: View, group: ProxyGroup) -> Scope:
    """Return what a group of proxies is narrowed to: the workload's own word holds, else its namespace's."""
    if group.scope is not None:
        return group.scope
    return _of_namespace(view).get(group.identity.namespace)


def in_scope(scope: Scope, key: ServiceKey) -> bool:
    """Say whether a narrowing leaves a service in the configuration."""
    return scope is None or any(pattern.fits(key) for pattern in scope)
