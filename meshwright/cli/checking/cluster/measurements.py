"""Health and metrics of a control plane in a cluster, read through the API server's proxy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from meshwright.cli.checking.judgements import server
from meshwright.cli.checking.judgements import server_state as judging
from meshwright.cli.checking.judgements.check import Check
from meshwright.cli.checking.judgements.server import Answer
from meshwright.kube.api import Api
from meshwright.kube.resource import Raw

_PORT: Final = 9091
"""Port of health and metrics if the Pod has no port named `http`."""
_PROXIES: Final = "meshwright_proxies"
_RUNNING_OUT: Final = "meshwright_certificates_running_out"
_FIRST: Final = "meshwright_certificate_acknowledged_expiry_seconds"


@dataclass(frozen=True, slots=True)
class ServerMeasurements:
    """Metrics of a control plane: proxies by state, and the service certificates of proxies."""

    proxies: Mapping[str, int]
    running_out: int
    first: Mapping[str, timedelta]


async def looked_at(api: Api, home: str, pods: Sequence[Raw]) -> Sequence[Check]:
    """Ask the first ready Pod of the control plane; without one, return no checks. Raises KubeError."""
    pod = next((item for item in pods if _is_ready(item)), None)
    if pod is None:
        return ()
    name, port = str(pod["metadata"]["name"]), _port(pod)
    # `proxied` raises an error for any status but 2xx, so an answer means that the Pod is ready.
    ready = await api.proxied(home, name, port, "/healthz/ready")
    measurements = measured(await api.proxied(home, name, port, "/metrics"))
    return (
        server.readiness(Answer(200, ready)),
        judging.proxies(measurements.proxies, home, name),
        judging.certificates(measurements.running_out, measurements.first, home, name),
    )


def measured(text: str) -> ServerMeasurements:
    """Read metrics in Prometheus text format; raise ValueError for any other text."""
    series = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return ServerMeasurements(
        {item.labels["state"]: int(item.value) for item in series if item.name == _PROXIES},
        sum(int(item.value) for item in series if item.name == _RUNNING_OUT),
        {item.labels["kind"]: timedelta(seconds=item.value) for item in series if item.name == _FIRST},
    )


def _is_ready(pod: Raw) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _port(pod: Raw) -> int:
    ports = (port for container in pod["spec"]["containers"] for port in container.get("ports") or ())
    return next(
        (int(inbound_port["containerPort"]) for inbound_port in ports if inbound_port.get("name") == "http"),
        _PORT,
    )
