"""The explanation of a request to a gateway, and the account that it is made from."""

from dataclasses import dataclass, field
from typing import Final

from catalog.explain.gateways.refusals import Refusals
from catalog.explain.remedy import Manifest
from catalog.explain.steps.step import Step
from catalog.oracle.decide import Answer
from catalog.oracle.edge import EdgeRequest
from catalog.relations.gateways.verdicts import ListenerVerdict
from catalog.store.view import View
from meshwright.mesh.kinds import GATEWAY, LISTENER_SET
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey

CLOSED: Final = "refused: the connection is closed"
IN_HANDSHAKE: Final = "refused: the connection is closed in the TLS handshake"
# A proxy selects the filter chain by the server name, and the backend of a connection, before the handshake.
CLOSED_IN_HANDSHAKE: Final = "The gateway closes the connection in the TLS handshake, without an answer."


@dataclass(frozen=True, slots=True)
class EdgeExplanation:
    """The answer to a request at a gateway; `missing` are manifests which would admit the gateway."""

    asked: EdgeRequest
    answer: Answer
    headline: str
    because: tuple[ObjectKey, ...]
    steps: tuple[Step, ...]
    missing: tuple[Manifest, ...] = ()


@dataclass
class Account:
    """Steps of one explanation; the last step has the outcome."""

    view: View
    asked: EdgeRequest
    refused: Refusals
    steps: list[Step] = field(default_factory=list)
    because: list[ObjectKey] = field(default_factory=list)

    def ended(
        self, answer: Answer, headline: str, text: str, missing: tuple[Manifest, ...] = ()
    ) -> EdgeExplanation:
        """Return the explanation, with a last step."""
        steps = (*self.steps, Step(text))
        return EdgeExplanation(self.asked, answer, headline, tuple(self.because), steps, missing)


def owner_of(gateway: PolicyKey, found: ListenerVerdict) -> tuple[ObjectKey, str]:
    """Return the Gateway or ListenerSet with a listener, and a text that names a ListenerSet alone."""
    if found.listener_set is None:
        return ObjectKey.from_name(GATEWAY, gateway), ""
    owner = ObjectKey.from_name(LISTENER_SET, found.listener_set)
    return owner, f" of {owner}"
