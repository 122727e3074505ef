"""The last step of an explanation: what the caller sees, and whether policy is what is missing."""

from catalog.explain.steps.step import Step
from catalog.oracle.decide import Answer, Decision
from catalog.oracle.request.request import Request
from catalog.relations.backends.ports import spoken
from catalog.relations.backends.workloads import backing
from catalog.store.view import View
from meshwright.mesh.policies.callers import Outsider


def conclusion(
    view: View, request: Request, decision: Decision, besides: tuple[str, ...], *, missing: bool
) -> Step:
    """Say the answer, how it shows, and what would change it; `missing` is whether policy lacks something."""
    said = _seen(view, request, decision)
    if decision.answer is Answer.ALLOWED or isinstance(request.client, Outsider):
        return Step(said)
    rest = "; and ".join(besides)
    if missing:
        return Step(f"{said}; policy lacks something, and that is not all: {rest}" if besides else said)
    if besides:
        return Step(f"{said}; policy is not what is missing: {rest}")
    return Step(f"{said}; no policy that is added would make it a yes")


def _seen(view: View, request: Request, decision: Decision) -> str:
    http = _is_http(view, request)
    chosen = [share for share in decision.shares if share.weight > 0]
    match decision.answer:
        case Answer.ALLOWED:
            return "allowed"
        case Answer.REFUSED if decision.turned_down is not None:
            status = decision.turned_down.status
            return f"refused: the client's sidecar {f'answers {status}' if status else 'ends the connection'}"
        case Answer.REFUSED if isinstance(request.client, Outsider):
            return "refused: the server's sidecar takes no such connection, or answers 403"
        case Answer.UNREACHABLE if isinstance(request.client, Outsider):
            return "unreachable: there is nobody whose sidecar might answer"
        case Answer.REFUSED if request.identity is None:
            return "refused: the TLS handshake fails"
        case Answer.REFUSED:
            return f"refused: the server's sidecar {'answers 403' if http else 'closes the connection'}"
        case Answer.UNREACHABLE if chosen:
            seen = (
                "the client's sidecar answers 503" if http else "the client's sidecar closes the connection"
            )
            return f"unreachable: nobody who might answer is ready, and {seen}"
        case Answer.UNREACHABLE:
            seen = "no connection, or 503" if http else "no connection"
            return f"unreachable: the client's sidecar knows nobody who might answer ({seen})"
        case Answer.DEPENDS if any(share.refused for share in chosen):
            return "depends on who is chosen: some of the workloads admit it, and some do not"
        case Answer.DEPENDS if any(not share.admitted for share in chosen):
            return "depends on who is chosen: of some backends nobody is ready"
        case Answer.DEPENDS:
            return "depends on which of the client's workloads calls: not all are told of the service"


def _is_http(view: View, request: Request) -> bool:
    service = view.services.get(request.service)
    port = service.port(request.port) if service is not None else None
    return port is None or spoken(port, backing(view, request.service)).is_http
