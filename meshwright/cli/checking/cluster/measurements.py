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
    """Metrics of proxies by state, and of the service certificates of proxies."""

    proxies: Mapping[str, int]
    running_out: int
    first: Mapping[str, timedelta]


async def looked_at(api: Api, home: str, pods: Sequence[Raw]) -> Sequence[Check]:
    """Ask the first ready Pod of the control plane; without one, return no checks. Raises KubeError."""
    pod = next((each for each in pods if _is_ready(each)), None)
    if pod is None:
        return ()
    name, port = str(pod["metadata"]["name"]), _port(pod)
    # `proxied` raises an error for any status but 2xx, so an answer means that the Pod is ready.
    ready = await api.proxied(home, name, port, "/healthz/ready")
    found = measured(await api.proxied(home, name, port, "/metrics"))
    return (
        server.readiness(Answer(200, ready)),
        judging.proxies(found.proxies, home, name),
        judging.certificates(found.running_out, found.first, home, name),
    )


def measured(text: str) -> ServerMeasurements:
    """Read metrics in Prometheus text format; raise ValueError for any other text."""
    series = [each for family in text_string_to_metric_families(text) for each in family.samples]
    return ServerMeasurements(
        {each.labels["state"]: int(each.value) for each in series if each.name == _PROXIES},
        sum(int(each.value) for each in series if each.name == _RUNNING_OUT),
        {each.labels["kind"]: timedelta(seconds=each.value) for each in series if each.name == _FIRST},
    )


def _is_ready(pod: Raw) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _port(pod: Raw) -> int:
    ports = (port for each in pod["spec"]["containers"] for port in each.get("ports") or ())
    return next((int(each["containerPort"]) for each in ports if each.get("name") == "http"), _PORT)
