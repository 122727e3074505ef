"""Envoy's environment, as OpenTelemetry has it: whoever says more is heard."""

from collections.abc import Mapping

import pytest

from meshwright.agent.envoy.environment import environment
from meshwright.mesh.identity import ProxyName

NAME = ProxyName.parse("d7a1.shop.books")
KNOWN = "service.name=shop.books,service.instance.id=d7a1"


@pytest.mark.parametrize(
    ("own", "told"),
    [
        ({}, KNOWN),
        ({"OTEL_RESOURCE_ATTRIBUTES": ""}, KNOWN),
        ({"OTEL_RESOURCE_ATTRIBUTES": " , "}, KNOWN),
        (
            {"OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=prod,"},
            f"{KNOWN},deployment.environment=prod",
        ),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=web"}, f"{KNOWN},service.name=web"),
        ({"OTEL_SERVICE_NAME": "web"}, f"{KNOWN},service.name=web"),
        (
            {"OTEL_RESOURCE_ATTRIBUTES": "a=b,service.name=front", "OTEL_SERVICE_NAME": "web"},
            f"{KNOWN},a=b,service.name=front,service.name=web",
        ),
    ],
)
def test_spans_are_named_by_the_proxy_unless_somebody_says_more(own: Mapping[str, str], told: str) -> None:
    """Of one name the last counts: what the agent's environment says, and OTEL_SERVICE_NAME before that."""
    found = environment({"HOME": "/", **own}, NAME)
    assert found == {"HOME": "/", **own, "OTEL_RESOURCE_ATTRIBUTES": told}
