"""Explanations: why a request is allowed or denied, step by step, and which object would allow it.

The package asks only the oracle and never decides itself, so the explanation always agrees with the decision.

`explain` explains a request, `explain_outside` a call out of the mesh, and `explain_edge` a request to a
gateway. `standing` compares a decision with the configuration acknowledged by sidecars. `steps/` has a module
for each subject of a step, and `gateways/` the parts of `explain_edge`. Start reading with `explanation`.
"""

from catalog.explain.edge import default_port, explain_edge
from catalog.explain.enforcement import Enforcement, concerned, enforcement_without_server, standing
from catalog.explain.explanation import Explanation, explain
from catalog.explain.gateways.account import EdgeExplanation
from catalog.explain.names import reason_for_unknown
from catalog.explain.outside import OutsideExplanation, call_to, call_to_service, explain_outside, in_the_mesh
from catalog.explain.outside_services import address_outside
from catalog.explain.steps.step import Step

__all__ = [
    "EdgeExplanation",
    "Enforcement",
    "Explanation",
    "OutsideExplanation",
    "Step",
    "address_outside",
    "call_to",
    "call_to_service",
    "concerned",
    "default_port",
    "enforcement_without_server",
    "explain",
    "explain_edge",
    "explain_outside",
    "in_the_mesh",
    "reason_for_unknown",
    "standing",
]
