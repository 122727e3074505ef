"""Protocols of services' ports, as far as policy depends on them."""

from typing import Final

from catalog.relations.backends.ports import spoken
from catalog.relations.backends.workloads import backing
from catalog.store.view import IN_VIEW, View
from meshwright.engine.derived import derived
from meshwright.mesh.service import Protocol, ServiceKey, ServicePort


@derived
def spoken_there(view: View, key: ServiceKey, port: ServicePort) -> Protocol:
    """Return the protocol of a service's port."""
    return spoken(port, backing(view, key))


_protocols: Final = IN_VIEW.firewalls(spoken_there)


def protocol_of(view: View, key: ServiceKey, port: ServicePort) -> Protocol:
    """Return the protocol of a service's port; readers do not depend on other attributes of workloads."""
    return _protocols(view).value(key, port)
