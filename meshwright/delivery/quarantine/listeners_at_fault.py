"""Listeners that a proxy cannot bind: the listener of the Gateway behind them, and what would be right."""

import re
from typing import Final

from catalog.store.gateway import gateways
from catalog.store.inventory import holder_of
from catalog.store.view import View
from meshwright.delivery.quarantine.findings import RejectedResource
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.workload import Edge
from meshwright.sidecars.contract.reasons import Reason
from xds.protocol.resources.resource import LISTENER

_FIRST_FREE_PORT: Final = 1024
"""Lowest port that Linux lets every user bind, unless the machine is set otherwise."""
_PORT: Final = re.compile(r"\|([0-9]{1,5})$")
"""The port in the name of a listener with an own port, for example `edge-listener|192.0.2.10|443`."""
_LOW_PORT: Final = (
    "a port below 1024 needs CAP_NET_BIND_SERVICE for the proxy's user (`meshwright unit agent --low-ports`)"
)


def listener_clauses(view: View, rejected: RejectedResource) -> tuple[str, ...]:
    """Return the Gateway's listener behind a rejected listener, and what the proxy lacks, if known."""
    match = _PORT.search(rejected.name) if rejected.type_url == LISTENER else None
    if match is None:
        return ()
    port = int(match[1])
    lacks_right = rejected.reason is Reason.PERMISSION and port < _FIRST_FREE_PORT
    clauses = (_of_gateway(view, rejected, port), _LOW_PORT if lacks_right else "")
    return tuple(filter(None, clauses))


def _of_gateway(view: View, rejected: RejectedResource, port: int) -> str:
    workload = holder_of(view, ProxyName.parse(rejected.proxy))
    if workload is None or not isinstance(workload.interception, Edge):
        return ""
    key = PolicyKey(workload.key.namespace, workload.interception.gateway)
    gateway = gateways(view).values_unrecorded().get(key)
    names = [listener.name for listener in gateway.listeners if listener.port == port] if gateway else []
    word = "listener" if len(names) == 1 else "listeners"
    return f"it serves {word} {', '.join(names)} (port {port}) of Gateway {key}" if names else ""
