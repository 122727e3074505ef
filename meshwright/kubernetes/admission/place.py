"""Address at which an API server reaches a webhook: a Service in the cluster, or a URL."""

import re
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import urlsplit

from meshwright.mesh.names import is_dns_label, is_dns_subdomain
from meshwright.specs.values.references import parse_address

PATH: Final = "/validate"

_SERVICE: Final = re.compile(r"(?P<namespace>[^/:]+)/(?P<name>[^/:]+)(:(?P<port>[0-9]{1,5}))?")
_RULE: Final = (
    "must be NAMESPACE/SERVICE or NAMESPACE/SERVICE:PORT of a Service in the cluster, or a URL, for example "
    "https://10.0.0.5:9443"
)


@dataclass(frozen=True, slots=True)
class Place:
    """Address of a webhook.

    `host` is the host name in the server's certificate, for example `meshwright.meshwright-system.svc`.
    `service` is namespace, name and port, or None for a URL.
    """

    text: str
    host: str
    service: tuple[str, str, int] | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `NAMESPACE/SERVICE`, `NAMESPACE/SERVICE:PORT` or `https://HOST:PORT`.

        The port of a Service is 443 if the text has none. Raises ValueError.
        """
        if match := _SERVICE.fullmatch(text):
            namespace, name, port = match["namespace"], match["name"], int(match["port"] or 443)
            if not (is_dns_label(namespace) and is_dns_label(name) and 1 <= port <= 65535):
                raise ValueError(_RULE)
            return cls(text, f"{name}.{namespace}.svc", (namespace, name, port))
        try:
            url = urlsplit(text)
            host, _ = url.hostname or "", url.port
        except ValueError:
            raise ValueError(_RULE) from None
        plain = url.scheme == "https" and url.path in ("", "/") and not (url.query or url.fragment)
        if not plain or "@" in url.netloc or not (is_dns_subdomain(host) or parse_address(host)):
            raise ValueError(_RULE)
        return cls(text.rstrip("/"), host)

    def client_config(self, path: str = PATH) -> dict[str, object]:
        """Return the `clientConfig` of a webhook, without `caBundle`."""
        if self.service is None:
            return {"url": f"{self.text}{path}"}
        namespace, name, port = self.service
        return {"service": {"namespace": namespace, "name": name, "port": port, "path": path}}

    def __str__(self) -> str:
        return self.text
