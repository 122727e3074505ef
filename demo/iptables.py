"""The redirect rules of a workload's network namespace, as a pod's init container sets them. Pure."""

from typing import Final

ENVOY_UID: Final = 1500
OUTBOUND_PORT: Final = 15001
INBOUND_PORT: Final = 15003
ADMIN_PORT: Final = 15000


def rules(uid: int = ENVOY_UID, inbound_excluded: tuple[int, ...] = (ADMIN_PORT,)) -> str:
    """Return the input of `iptables-restore --noflush`: table nat, IPv4, TCP.

    Inbound goes to port 15003, but for the excluded ports; outbound to 15001, but for what the sidecar
    (`uid`) sends and for loopback. A sidecar that calls its own workload by the workload's address is led
    to its inbound port, so that a call to oneself is authenticated like any other. An excluded port has a
    rule of its own, before the redirect: one list would end at netfilter's 15 ports.
    """
    excluded = [f"-A MESH_INBOUND -p tcp --dport {port} -j RETURN" for port in sorted(inbound_excluded)]
    lines = [
        "*nat",
        ":MESH_INBOUND - [0:0]",
        ":MESH_IN_REDIRECT - [0:0]",
        ":MESH_OUTBOUND - [0:0]",
        ":MESH_OUT_REDIRECT - [0:0]",
        f"-A MESH_IN_REDIRECT -p tcp -j REDIRECT --to-ports {INBOUND_PORT}",
        f"-A MESH_OUT_REDIRECT -p tcp -j REDIRECT --to-ports {OUTBOUND_PORT}",
        "-A PREROUTING -p tcp -j MESH_INBOUND",
        *excluded,
        "-A MESH_INBOUND -p tcp -j MESH_IN_REDIRECT",
        "-A OUTPUT -p tcp -j MESH_OUTBOUND",
        f"-A MESH_OUTBOUND -o lo ! -d 127.0.0.0/8 -p tcp -m owner --uid-owner {uid} -j MESH_IN_REDIRECT",
        f"-A MESH_OUTBOUND -o lo -m owner ! --uid-owner {uid} -j RETURN",
        f"-A MESH_OUTBOUND -m owner --uid-owner {uid} -j RETURN",
        "-A MESH_OUTBOUND -d 127.0.0.0/8 -j RETURN",
        "-A MESH_OUTBOUND -j MESH_OUT_REDIRECT",
        "COMMIT",
    ]
    return "\n".join(lines) + "\n"
