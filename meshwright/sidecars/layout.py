"""What the parts of a sidecar agree on beside their workload: its user, ports, paths and files."""

import enum
from typing import Final

PROXY_UID: Final = 1500
"""The proxy's user: what it sends is not captured."""
ADMIN_SOCKET: Final = "admin.sock"
"""The socket of Envoy's admin interface in the agent's run directory, for the agent's user alone."""
LONGEST_SOCKET: Final = 107
"""Bytes of a Unix socket's path in Linux (unix(7)), without the zero at its end."""
ADMIN_PORT: Final = 15000
"""Where Envoy's admin interface is for every user of the machine, if it is asked for; reserved in Pods."""
OUTBOUND_PORT: Final = 15001
INBOUND_PORT: Final = 15003
TPROXY_PORT: Final = 15006
"""Where inbound connections arrive as they are (TPROXY), beside those that are redirected."""
STATUS_PORT: Final = 15020
"""The agent's own server: probes and metrics come to it from outside the mesh."""

CHAIN_FILE: Final = "proxy.pem"
KEY_FILE: Final = "proxy.key"
AUTHORITY_FILE: Final = "ca.pem"
TRUST_DOMAIN_FILE: Final = "trust-domain"
"""Beside `ca.pem`: the mesh's trust domain, which roots of somebody else's CA need not name."""

PROBE_PREFIX: Final = "/app-health/"
READY_PATH: Final = "/healthz/ready"
LIVE_PATH: Final = "/healthz/live"
METRICS_PATH: Final = "/metrics"
STATUS_PATH: Final = "/healthz/status"
"""All that the agent knows of its proxy, as JSON; for this machine alone."""
DRAIN_PATH: Final = "/drain"
"""Posted to by this machine alone: the proxy begins to discourage calls to its workload."""

DENIED_HEADER: Final = "x-meshwright-denied"
"""In which a proxy tells callers of the mesh why it has denied them (docs/debugging.md)."""

UNDELIVERED_HEADER: Final = "x-meshwright-undelivered"
"""By which a proxy tells the caller's that its application has not been reached (docs/resilience.md)."""

DIAGNOSIS_HEADER: Final = "x-meshwright-diagnosis"
"""Header of a request that is made to find out who answers it (`meshwright connectivity`)."""

OWN_ANSWER_HEADER: Final = "x-meshwright-own-answer"
"""Header of an answer that a sidecar gives by itself to a diagnosis: `caller NR route_not_found`.

It says the side, Envoy's response flags and its response code details, separated by blanks
(docs/envoy-defaults.md).
"""


class Side(enum.StrEnum):
    """The sidecar that answers: that of the caller, or that of the called application."""

    CALLER = "caller"
    CALLED = "called"

    @property
    def sidecar(self) -> str:
        """Return the words for a sidecar of this side."""
        return "caller's sidecar" if self is Side.CALLER else "called sidecar"


class ProbeKind(enum.StrEnum):
    """A container's probes, by the fields in which Kubernetes has them."""

    LIVENESS = "livenessProbe"
    READINESS = "readinessProbe"
    STARTUP = "startupProbe"

    @property
    def word(self) -> str:
        """Return the last part of the path under which the agent is asked for it."""
        return {
            ProbeKind.LIVENESS: "livez",
            ProbeKind.READINESS: "readyz",
            ProbeKind.STARTUP: "startupz",
        }[self]


def probe_path(container: str, kind: ProbeKind) -> str:
    """Return the path under which the agent is asked for a container's probe."""
    return f"{PROBE_PREFIX}{container}/{kind.word}"
