"""Which services are to be resolved: those with names in the DNS, kept current with the objects."""

from collections.abc import Collection, Mapping

from mesh.objects import ObjectKey, Sourced
from mesh.picture import Picture
from mesh.service import Service


class DnsWanted:
    """The Services in force that have names in the DNS; it looks at the objects that have changed."""

    def __init__(self) -> None:
        self._objects: Picture[ObjectKey, Sourced] = Picture()
        self._services: dict[ObjectKey, Service] = {}

    def follow(self, objects: Mapping[ObjectKey, Sourced]) -> Collection[Service]:
        """Return the services among the objects that are in force now."""
        now = Picture.of(objects)
        for key, sourced in now.since(self._objects).items():
            self._services.pop(key, None)
            if sourced is not None and isinstance(sourced.value, Service) and sourced.value.dns_names:
                self._services[key] = sourced.value
        self._objects = now
        return self._services.values()
