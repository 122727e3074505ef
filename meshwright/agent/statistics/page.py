"""The page for Prometheus: a proxy's edges, and the state of Envoy."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from meshwright.agent.envoy.admin import AdminUnreachable, AnswerTooLarge, EnvoyAdmin
from meshwright.agent.statistics.edge_totals import WorkloadLabels
from meshwright.agent.statistics.edges import Edges
from meshwright.agent.statistics.exposition import written
from meshwright.agent.statistics.statistics import STATS_PATH, read
from meshwright.mesh.identity import ProxyName

_ALL_PATH: Final = "/stats/prometheus"
_OF_ENVOY: Final = (
    r"^(control_plane\.connected_state"
    r"|server\.(live|uptime|concurrency|memory_(allocated|heap_size|physical_size)|total_connections"
    r"|hot_restart_epoch|days_until_first_cert_expiring)"
    r"|cluster_manager\.(active_clusters|warming_clusters|cds\.update_(success|rejected))"
    r"|listener_manager\.(total_listeners_(active|draining|warming)|lds\.update_(success|rejected)))$"
)
ENVOY_PATH: Final = f"{_ALL_PATH}?filter={quote(_OF_ENVOY, safe='')}"
"""Path of Envoy's metrics with one series per proxy."""
_CERTIFICATES_PATH: Final = "/certs"
_ACCOUNT: Final = re.compile(r"spiffe://[^/]+/ns/[^/]+/sa/(?P<account>[^/]+)")


class Figures:
    """The page of metrics of one proxy, made from Envoy's admin interface."""

    def __init__(self, admin: EnvoyAdmin) -> None:
        self._admin = admin
        self._edges = Edges()

    async def page(self, name: ProxyName, whole: bool) -> str:
        """Return the page; empty if Envoy does not answer. With `whole` it has all of Envoy's metrics."""
        try:
            of_envoy = await self._all() if whole else await self._admin.text(ENVOY_PATH)
            statistics = read(await self._admin.json(STATS_PATH))
            account = account_of(await self._admin.json(_CERTIFICATES_PATH))
        except AdminUnreachable:
            return ""
        who = WorkloadLabels(name.namespace, name.service, account)
        return written(self._edges.families(statistics, who)) + of_envoy

    async def _all(self) -> str:
        """Return all of Envoy's metrics; the few of ENVOY_PATH and a comment if they are too large."""
        try:
            return await self._admin.text(_ALL_PATH)
        except AnswerTooLarge as error:
            return await self._admin.text(ENVOY_PATH) + f"# meshwright: not all of Envoy's figures: {error}\n"


def account_of(certificates: Mapping[str, Any]) -> str:
    """Return the ServiceAccount in the proxy's service certificate; empty without such a certificate.

    `certificates` is the answer of Envoy's admin interface at `/certs`:
    https://www.envoyproxy.io/docs/envoy/latest/operations/admin#get--certs
    """
    for uri in _own_uris(certificates):
        if match := _ACCOUNT.fullmatch(uri):
            return match["account"]
    return ""


def _own_uris(certificates: Mapping[str, Any]) -> Iterator[str]:
    for item in certificates.get("certificates", ()):
        for certificate in item.get("cert_chain", ()):
            for name in certificate.get("subject_alt_names", ()):
                yield str(name.get("uri", ""))
