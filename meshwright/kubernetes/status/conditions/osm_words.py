"""What the status of Open Service Mesh's own kinds says, in its words: no conditions, a word or two."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from meshwright.kubernetes.status.statements import message
from meshwright.mesh.kinds import INGRESS_BACKEND, MESH_ROOT_CERTIFICATE, Kind
from meshwright.mesh.problems.problem import Problem, Severity

Words = Mapping[str, str]
"""The fields of a status."""


def ingress(problems: Iterable[Problem], state: str) -> Words:
    """Return whether an IngressBackend is committed, and why not; what is only doubtful is told too."""
    del state
    found = [each for each in problems if each.severity is not Severity.INFO]
    is_wrong = any(each.severity is Severity.ERROR for each in found)
    said = message(found) if found else "all of it is in force"
    return {"currentStatus": "error" if is_wrong else "committed", "reason": said}


def root(problems: Iterable[Problem], state: str) -> Words:
    """Return the state of a root; nothing as long as that is not known."""
    if any(each.severity is Severity.ERROR for each in problems):
        return {"state": "error"}
    return {"state": state} if state else {}


WORDED: Final[Mapping[Kind, Callable[[Iterable[Problem], str], Words]]] = {
    INGRESS_BACKEND: ingress,
    MESH_ROOT_CERTIFICATE: root,
}
"""The kinds whose status has such words, beside the Events that tell of them."""
