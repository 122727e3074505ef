"""Scopes: the services in a proxy's configuration, as limited by a namespace or workload.

A scope only removes services, and gives no protection, because admission is decided at the server. It names
called services; their backends, including those of splits, are included automatically.
"""

from typing import Final

from catalog.relations.groups import ProxyGroup
from catalog.store.view import IN_VIEW, View, namespaces
from meshwright.mesh.service import Scope, ServiceKey

_of_namespace: Final = IN_VIEW.column(namespaces, lambda namespace: namespace.scope)
"""The scope in each namespace's annotation."""


def scope_of(view: View, group: ProxyGroup) -> Scope:
    """Return the scope of a group of proxies: the workload's own, else its namespace's."""
    if group.scope is not None:
        return group.scope
    return _of_namespace(view).get(group.identity.namespace)


def in_scope(scope: Scope, key: ServiceKey) -> bool:
    """Return whether a scope includes a service.

    For example, the scope `shop/*` includes `shop/cart`, and no service of `bank`.
    """
    return scope is None or any(pattern.fits(key) for pattern in scope)
