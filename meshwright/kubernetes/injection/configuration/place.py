"""Place of the injector's configuration: a key of a ConfigMap in the cluster."""

from dataclasses import dataclass
from typing import Final, Self

from meshwright.mesh.names import Namespace, is_dns_label, is_dns_subdomain

CONFIG_MAP: Final = "meshwright-injection"
CONFIG_KEY: Final = "config.yaml"
"""Name and key of the ConfigMap that the chart creates in the control plane's namespace."""

SETTINGS: Final = "meshwright"
"""Name of the ConfigMap with the server's settings from the chart, under the same key."""


@dataclass(frozen=True, slots=True)
class ConfigMapKey:
    """Namespace and name of a ConfigMap, and a key of its `data`."""

    namespace: Namespace
    name: str
    key: str = CONFIG_KEY

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}/{self.key}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `NAMESPACE/NAME` or `NAMESPACE/NAME/KEY`. Raises ValueError."""
        namespace, _, rest = text.partition("/")
        name, slash, key = rest.partition("/")
        if not is_dns_label(namespace) or not is_dns_subdomain(name) or (slash and not key) or "/" in key:
            raise ValueError(
                f"must be NAMESPACE/NAME or NAMESPACE/NAME/KEY, for example meshwright-system/{CONFIG_MAP}"
            )
        return cls(Namespace(namespace), name, key or CONFIG_KEY)
