"""Names of outbound filter chains: written by the translation, read back beside the proxy."""

import re
from typing import Final

from meshwright.mesh.names import Namespace, Port, ServiceName
from meshwright.mesh.service import Protocol, ServiceKey, Upstream

_OUTBOUND: Final = re.compile(r"outbound_(?P<namespace>[^/_]+)/(?P<name>[^/_]+)_\d+_[a-z-]+")


def outbound_chain(upstream: Upstream, port: Port, protocol: Protocol) -> str:
    """Return `outbound_<ns>/<service>_<service port>_<protocol>`; no part of it can hold a `_`.

    Of a host outside the mesh it has that in the service's place, and so no slash.
    """
    return f"outbound_{upstream}_{port}_{protocol}"


def called_service(chain: str) -> ServiceKey | None:
    """Return the service that an outbound chain leads to, None for any other chain's name."""
    found = _OUTBOUND.fullmatch(chain)
    if found is None:
        return None
    return ServiceKey(Namespace(found["namespace"]), ServiceName(found["name"]))
