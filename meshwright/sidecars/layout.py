"""Constants that the parts of a sidecar share: its user, ports, paths and files."""

import enum
from typing import Final

from meshwright.mesh.gateway.gateways import AGENT_PORT

PROXY_UID: Final = 1500
"""User ID of the proxy. Traffic of this user is not captured."""
ADMIN_SOCKET: Final = "admin.sock"
"""Socket of Envoy's admin interface in the agent's run directory, accessible to the agent's user only."""
LONGEST_SOCKET: Final = 107
"""Greatest length in bytes of a Unix socket's path in Linux (unix(7)), without the terminating zero."""
ADMIN_PORT: Final = 15000
"""Port of Envoy's admin interface for every user of the machine, if enabled; always reserved in Pods."""
OUTBOUND_PORT: Final = 15001
INBOUND_PORT: Final = 15003
TPROXY_PORT: Final = 15006
"""Port for inbound connections captured by TPROXY, which keeps their addresses, beside redirected ones."""
ADS_PORT: Final = 15128
ENROLMENT_PORT: Final = 15130
RENEWAL_PORT: Final = 15131
"""Usual ports of the control plane: for sidecars, for joining the mesh, and for renewal."""
STATUS_PORT: Final = AGENT_PORT
"""Port of the agent's own server, which answers probes and metrics from outside of the mesh."""

CHAIN_FILE: Final = "proxy.pem"
KEY_FILE: Final = "proxy.key"
AUTHORITY_FILE: Final = "ca.pem"
TRUST_DOMAIN_FILE: Final = "trust-domain"
"""File beside `ca.pem` with the trust domain, because certificates of an external CA need not contain it.
"""

PROBE_PREFIX: Final = "/app-health/"
READY_PATH: Final = "/healthz/ready"
LIVE_PATH: Final = "/healthz/live"
METRICS_PATH: Final = "/metrics"
STATUS_PATH: Final = "/healthz/status"
"""Path of the agent's full status as JSON, for callers on this machine only."""
DRAIN_PATH: Final = "/drain"
"""Path for a POST from this machine only; the proxy then begins to discourage calls to its workload."""

FIRST_FREE_PORT: Final = 1024
"""Lowest port that Linux lets every user bind, unless the machine is set otherwise."""
LOW_PORT: Final = (
    "a port below 1024 needs CAP_NET_BIND_SERVICE for the proxy's user (`meshwright unit agent --low-ports`)"
)
"""What a proxy lacks that cannot bind a lower port."""
GATEWAY_CLUSTER: Final = "gateway-listeners"
"""Cluster without endpoints that tells the agent of a gateway which listeners the control plane has sent."""
GATEWAY_METADATA: Final = "meshwright.gateway"
"""Key of the cluster's metadata: `gateway`, for example `shop/edge`, and `listeners`, their names."""

DENIED_HEADER: Final = "x-meshwright-denied"
"""Response header with the reason for a denied request, for callers in the mesh (docs/debug/debugging.md)."""

UNDELIVERED_HEADER: Final = "x-meshwright-undelivered"
"""Response header for the caller's proxy: the application was not reached (docs/policy/resilience.md)."""

DIAGNOSIS_HEADER: Final = "x-meshwright-diagnosis"
"""Request header of a diagnosis, which finds out which hop answers (`meshwright connectivity`)."""

OWN_ANSWER_HEADER: Final = "x-meshwright-own-answer"
"""Response header of an answer that a sidecar itself gives to a diagnosis.

Its value has the side, Envoy's response flags and its response code details, separated by spaces
(docs/debug/envoy-defaults.md), for example `caller NR route_not_found`.
"""


class Side(enum.StrEnum):
    """The sidecar that answers a request: the caller's, or the called application's."""

    CALLER = "caller"
    CALLED = "called"

    @property
    def sidecar(self) -> str:
        """Return the words for a sidecar on this side."""
        return "caller's sidecar" if self is Side.CALLER else "called sidecar"


class ProbeKind(enum.StrEnum):
    """The kinds of probes, named like the fields of a container."""

    LIVENESS = "livenessProbe"
    READINESS = "readinessProbe"
    STARTUP = "startupProbe"

    @property
    def word(self) -> str:
        """Return the last part of the agent's path for this kind."""
        return {
            ProbeKind.LIVENESS: "livez",
            ProbeKind.READINESS: "readyz",
            ProbeKind.STARTUP: "startupz",
        }[self]


def probe_path(container: str, kind: ProbeKind) -> str:
    """Return the agent's path for a probe, for example `/app-health/web/readyz`."""
    return f"{PROBE_PREFIX}{container}/{kind.word}"
