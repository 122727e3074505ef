"""The address at which this server listens for other servers, and the one that it announces."""

import socket
from collections.abc import Mapping
from typing import Final

import structlog

from meshwright.controller.errors import StartupError
from meshwright.controller.settings.settings import Settings
from meshwright.controller.settings.store_kind import StoreKind
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.listening_sockets import listening

DEFAULT: Final = HostPort("::", 15132)
"""Address of the port unless a setting names another one."""

POD_IP: Final = "POD_IP"
"""Environment variable with the address of the server's Pod."""

_EVERYWHERE: Final = ("::", "0.0.0.0")  # noqa: S104 - compared only

_log = structlog.get_logger("controller.sharing.peers")


def peer_socket(settings: Settings) -> socket.socket | None:
    """Return the listening socket for other servers; None with a state directory of the only server.

    If the default port is in use, a free one is taken, because the announced address has the port. Two
    servers can then run on one machine. Raises StartupError for an address in the settings.
    """
    if settings.store is StoreKind.DIRECTORY:
        return None
    if settings.peer_address is not None:
        try:
            return listening(settings.peer_address)
        except OSError as error:
            reason = error.strerror or "the host is not known here"
            raise StartupError(
                f"cannot listen on {settings.peer_address} (peer_address): {reason}"
            ) from error
    try:
        return listening(DEFAULT)
    except OSError as error:
        _log.info("default port for other servers is in use; another one is taken", reason=error.strerror)
        return listening(HostPort(DEFAULT.host, 0))


def announced(bound: HostPort, reached_at: str, environment: Mapping[str, str], host_name: str) -> HostPort:
    """Return the address at which other servers reach the port bound to `bound`.

    `reached_at` is the setting, a host or an IP address, and wins. A port that listens on one address only is
    announced with this address. Otherwise it is the address of the Pod, or the name of the machine. For
    example, the port `[::]:15132` in the Pod 10.0.0.7 is announced as `10.0.0.7:15132`.
    """
    if reached_at:
        return HostPort(reached_at, bound.port)
    if bound.host not in _EVERYWHERE:
        return bound
    return HostPort(environment.get(POD_IP, "") or host_name, bound.port)
