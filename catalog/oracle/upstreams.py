"""Which UpstreamPolicy holds for a service: the oldest that names it, else the first by name."""

from catalog.store.own import upstream_policies
from catalog.store.view import View
from meshwright.mesh.policies.upstreams import UpstreamPolicy
from meshwright.mesh.service import ServiceKey


def reaching(view: View, key: ServiceKey) -> UpstreamPolicy | None:
    """Return the UpstreamPolicy by which the endpoints of a service are reached; None by the mesh's terms.

    Of a headless service the endpoint that is called answers.
    """
    service = view.services.get(key)
    if service is None or service.headless:
        return None
    found = (each for each in upstream_policies(view).values() if each.service == key)
    return min(found, key=lambda each: (each.created or "~", each.key), default=None)
