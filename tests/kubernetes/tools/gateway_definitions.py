"""The Gateway API's definitions of the standard channel, from the real parts."""

from typing import Any

from tests.tools import libyaml
from tools.real_parts.building import shared
from tools.real_parts.parts import GATEWAY_DEFINITIONS

KINDS = (
    "gatewayclasses",
    "gateways",
    "httproutes",
    "grpcroutes",
    "tlsroutes",
    "tcproutes",
    "referencegrants",
)


def definition(plural: str) -> dict[str, Any]:
    """Return the CustomResourceDefinition of a kind, for example of `httproutes`."""
    file = shared(GATEWAY_DEFINITIONS) / f"gateway.networking.k8s.io_{plural}.yaml"
    return dict(libyaml.load(file.read_text("utf-8")))
