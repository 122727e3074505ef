"""Status fields of the kinds of Open Service Mesh, which lack conditions."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from meshwright.kubernetes.status.statements import message
from meshwright.mesh.kinds import INGRESS_BACKEND, MESH_ROOT_CERTIFICATE, Kind
from meshwright.mesh.problems.problem import Problem, Severity

Words = Mapping[str, str]
"""Fields of a status and their values."""


def ingress(problems: Iterable[Problem], state: str) -> Words:
    """Return the status of an IngressBackend: `committed` or `error`, with all errors and warnings."""
    del state
    result = [problem for problem in problems if problem.severity is not Severity.INFO]
    is_wrong = any(problem.severity is Severity.ERROR for problem in result)
    text = message(result) if result else "the whole object is in force"
    return {"currentStatus": "error" if is_wrong else "committed", "reason": text}


def root(problems: Iterable[Problem], state: str) -> Words:
    """Return the status of a MeshRootCertificate; empty while the state is unknown."""
    if any(problem.severity is Severity.ERROR for problem in problems):
        return {"state": "error"}
    return {"state": state} if state else {}


WORDED: Final[Mapping[Kind, Callable[[Iterable[Problem], str], Words]]] = {
    INGRESS_BACKEND: ingress,
    MESH_ROOT_CERTIFICATE: root,
}
"""The kinds with a status of this form. Events report on their objects too."""
