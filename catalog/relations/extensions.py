"""Where ExtensionServices are that other objects name."""

from catalog.store.osm import extension_services
from catalog.store.view import View
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.policies.authorization import ExternalAuthorization


def server_of(view: View, found: ExternalAuthorization) -> HostPort | None:
    """Return where the ExtensionService is that an object names; None for none, or one that is not there."""
    service = None if found.service is None else extension_services(view).get(found.service)
    return None if service is None else service.server
