"""Envoy's environment: the agent's own, and by which name a proxy's spans are known. Pure.

Envoy gives spans of OpenTelemetry no name of a service but the one that its environment has
(https://opentelemetry.io/docs/specs/otel/resource/sdk/). Listeners are the same for all callers, and cannot
say it.
"""

from collections.abc import Mapping
from typing import Final

from meshwright.mesh.identity import ProxyName

RESOURCE: Final = "OTEL_RESOURCE_ATTRIBUTES"
"""Pairs of a name and a value, with commas between: of one name Envoy takes the last."""
SERVICE: Final = "OTEL_SERVICE_NAME"
"""What goes before any `service.name` among them; Envoy itself does not look at it."""


def environment(own: Mapping[str, str], name: ProxyName) -> dict[str, str]:
    """Return the environment of a proxy's Envoy, with what the agent's `own` says of spans in force.

    Else `service.name` is `<service>.<namespace>`, as in Zipkin's spans, and `service.instance.id` the UUID.
    """
    pairs = [f"service.name={name.service}.{name.namespace}", f"service.instance.id={name.uuid}"]
    if said := own.get(RESOURCE, "").strip(" ,"):
        pairs.append(said)
    if service := own.get(SERVICE):
        pairs.append(f"service.name={service}")
    return {**own, RESOURCE: ",".join(pairs)}
