"""Parser of Envoy's ejected endpoints, from the admin interface. Pure.

https://www.envoyproxy.io/docs/envoy/latest/operations/admin#get--clusters?format=json
"""

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final

from meshwright.agent.envoy.responses import part, records
from meshwright.mesh.host_port import HostPort

STATS_PATH: Final = "/stats?usedonly&filter=outlier_detection.ejections_active$"
"""Path of the counters of ejections, which are checked first because the list of endpoints is long."""

CLUSTERS_PATH: Final = "/clusters?format=json"

_ACTIVE: Final = re.compile(r"ejections_active: [1-9]")


def has_ejected(stats: str) -> bool:
    """Return whether any endpoint is ejected, from the answer of STATS_PATH."""
    return _ACTIVE.search(stats) is not None


def ejected(clusters: Mapping[str, object]) -> tuple[HostPort, ...]:
    """Return the ejected endpoints, sorted, from the answer of CLUSTERS_PATH."""
    result = (
        endpoint
        for cluster in records(clusters, "cluster_statuses")
        for host in records(cluster, "host_statuses")
        if part(host, "health_status").get("failed_outlier_check") is True
        and (endpoint := _endpoint(part(part(host, "address"), "socket_address"))) is not None
    )
    return tuple(sorted(set(result)))


def _endpoint(record: Mapping[str, object]) -> HostPort | None:
    host, port = record.get("address"), record.get("port_value")
    if not isinstance(host, str) or not isinstance(port, int):
        return None
    try:
        return HostPort(str(ip_address(host)), port)
    except ValueError:
        return None
