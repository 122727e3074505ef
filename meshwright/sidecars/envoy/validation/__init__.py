"""Envoy's own validation of resources, applied before they are sent.

Envoy refuses a whole resource for one wrong field. Its rules are options of the API's descriptors
(`validate.rules`, protoc-gen-validate), which the generated modules keep (`rules`, `messages`); `code` has
the checks that Envoy makes in code. protoc-gen-validate's own Python package is not used: it is not
maintained, and needs `validate` as a top-level module, so that Envoy's options would be registered twice in
one process.

It never changes a resource.
"""

from meshwright.sidecars.envoy.validation.faults import Fault, Step
from meshwright.sidecars.envoy.validation.messages import faults, prepare
from meshwright.sidecars.envoy.validation.rules import UnknownRuleError

__all__ = ["Fault", "Step", "UnknownRuleError", "faults", "prepare"]
