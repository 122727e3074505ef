"""Clients without an identity, in policies: IP ranges, and the endpoints of Services."""

from typing import Final

from meshwright.mesh.names import Namespace, ServiceName, is_dns_label
from meshwright.mesh.policies.callers import IpRange
from meshwright.mesh.service import ServiceKey
from meshwright.specs.fields import Fields
from meshwright.specs.manifest import LABEL_RULE
from meshwright.specs.quotes import never
from meshwright.specs.values.references import NETWORK_RULE, object_name, parse_network

IP_RANGE: Final = "IPRange"


class Places:
    """IP ranges and Services among the permitted clients of one object."""

    def __init__(self) -> None:
        self.services: set[ServiceKey] = set()
        self.ranges: set[IpRange] = set()

    @property
    def have_places(self) -> bool:
        """Return whether the object permits any IP range or Service."""
        return bool(self.services or self.ranges)

    def read_service(self, fields: Fields) -> None:
        """Read a Service with its namespace, which is required as in OSM, because gateways are elsewhere."""
        name = object_name(fields, "name")
        namespace = fields.text("namespace", expected=LABEL_RULE, fits=is_dns_label) or ""
        if not namespace:
            fields.wrong("namespace", "must be the namespace of the Service; it is required")
        elif not is_dns_label(namespace):
            fields.wrong("namespace", LABEL_RULE)
        self.services.add(ServiceKey(Namespace(namespace), ServiceName(name)))

    def read_range(self, fields: Fields) -> None:
        """Read an IP range among the permitted clients."""
        text = fields.required_text("name", NETWORK_RULE, never)
        if not text:
            return
        if (result := parse_network(text)) is None:
            fields.wrong("name", NETWORK_RULE)
        else:
            self.ranges.add(IpRange(str(result)))
