"""Permissive namespaces: their workloads admit every client with a certificate of the mesh.

The MeshConfig sets the default, and a Namespace's annotation overrides it for its own workloads. The
namespace of the server decides for all its callers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from catalog.store import mesh_wide
from catalog.store.view import IN_VIEW, View, namespaces, services
from meshwright.engine.derived import derived
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace
from meshwright.mesh.service import ServiceKey

_said: Final = IN_VIEW.column(namespaces, lambda namespace_object: namespace_object.permissive)


@dataclass(frozen=True, slots=True)
class PermissiveNamespaces:
    """The default of the mesh, and the namespaces that differ from it, sorted."""

    mesh_wide: bool
    exceptions: tuple[Namespace, ...]


@derived
def permissive_namespaces(view: View) -> PermissiveNamespaces:
    """Return the permissive namespaces; for a single namespace use `is_permissive`."""
    everywhere = mesh_wide.permissive(view).value()
    items_view = _said(view).items()
    # Only exceptions are part of the value, so an annotation that repeats the default changes nothing.
    return PermissiveNamespaces(
        everywhere, tuple(name for name, open_ in items_view if open_ is (not everywhere))
    )


open_namespaces: Final = IN_VIEW.firewall(permissive_namespaces)


@derived
def is_permissive(view: View, namespace: Namespace) -> bool:
    """Return whether a namespace's workloads admit every client of the mesh."""
    setting = _said(view).get(namespace)
    return mesh_wide.permissive(view).value() if setting is None else setting


def relevant_client(view: View, client: ServiceIdentity | None, key: ServiceKey) -> ServiceIdentity | None:
    """Return the client that matters for calls to a service: `None` if its namespace admits every client.

    A service and the backends of its splits only have workloads in their own namespace. Therefore values
    derived from the result are equal for all clients of a permissive namespace, and computed once.
    """
    return None if is_permissive(view, key.namespace) else client


services_in: Final = IN_VIEW.index("services by namespace", services, lambda key, _: (key.namespace,))


def open_services(view: View) -> Iterator[ServiceKey]:
    """Yield the services of permissive namespaces."""
    result = open_namespaces(view).value()
    # The annotation of a namespace can turn permissive mode off as well as on.
    if result.mesh_wide:
        yield from (key for key in view.services if key.namespace not in result.exceptions)
    else:
        for namespace in result.exceptions:
            yield from services_in(view).get(namespace, ())
