"""Names of outbound filter chains: written by the translation, parsed by the agent."""

import re
from typing import Final

from meshwright.mesh.names import Namespace, Port, ServiceName
from meshwright.mesh.service import Protocol, ServiceKey, Upstream

_OUTBOUND: Final = re.compile(r"outbound_(?P<namespace>[^/_]+)/(?P<name>[^/_]+)_\d+_[a-z-]+")


def outbound_chain(upstream: Upstream, port: Port, protocol: Protocol) -> str:
    """Return `outbound_<ns>/<service>_<service port>_<protocol>`, for example `outbound_shop/cart_80_http`.

    The parts cannot contain `_`. For a host outside of the mesh, the host is in the place of namespace and
    service, without a slash.
    """
    return f"outbound_{upstream}_{port}_{protocol}"


def called_service(chain: str) -> ServiceKey | None:
    """Return the service of an outbound chain; None for any other chain."""
    match = _OUTBOUND.fullmatch(chain)
    if match is None:
        return None
    return ServiceKey(Namespace(match["namespace"]), ServiceName(match["name"]))
