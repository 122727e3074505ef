"""The last step of an explanation: the effect for the caller, and whether policy is missing."""

from catalog.explain.steps.step import Step
from catalog.oracle.decide import Answer, Decision, LocalReply
from catalog.oracle.request.request import Request
from catalog.relations.backends.ports import spoken
from catalog.relations.backends.workloads import backing
from catalog.store.view import View
from meshwright.mesh.policies.callers import Outsider


def conclusion(
    view: View, request: Request, decision: Decision, besides: tuple[str, ...], *, missing: bool
) -> Step:
    """Return the step with the answer, its effect and its cause; `missing` is whether policy is missing."""
    text = _seen(view, request, decision)
    if decision.answer is Answer.ALLOWED or isinstance(request.client, Outsider):
        return Step(text)
    # Both causes are named: with the missing policy alone the next attempt would fail for the other reason.
    rest = "; and ".join(besides)
    if missing:
        return Step(f"{text} A policy is missing, and this is not all: {rest}." if besides else text)
    if besides:
        return Step(f"{text} The cause is not a missing policy: {rest}.")
    return Step(f"{text} An additional policy would not change this answer.")


def _seen(view: View, request: Request, decision: Decision) -> str:
    http = _is_http(view, request)
    chosen = [share for share in decision.shares if share.weight > 0]
    match decision.answer:
        case Answer.ALLOWED:
            return "The request is allowed."
        case Answer.REFUSED if decision.turned_down is not None:
            return _by_client(decision.turned_down)
        case Answer.REFUSED if isinstance(request.client, Outsider):
            return (
                "The request is refused: the server's sidecar does not accept such a "
                "connection, or answers 403."
            )
        case Answer.UNREACHABLE if isinstance(request.client, Outsider):
            return "The Service is unreachable: no workload with a sidecar could answer."
        case Answer.REFUSED if request.identity is None:
            return "The request is refused: the TLS handshake fails."
        case Answer.REFUSED:
            reply = "answers 403" if http else "closes the connection"
            return f"The request is refused: the server's sidecar {reply}."
        case Answer.UNREACHABLE if chosen:
            seen = (
                "the client's sidecar answers 503" if http else "the client's sidecar closes the connection"
            )
            return f"The Service is unreachable: the workloads that could answer are not ready, and {seen}."
        case Answer.UNREACHABLE:
            seen = "no connection, or 503" if http else "no connection"
            return (
                "The Service is unreachable: the client's sidecar knows no workload that could "
                f"answer ({seen})."
            )
        case Answer.DEPENDS if decision.broken is not None or any(share.refused for share in chosen):
            return (
                "The answer depends on the endpoint: some of the workloads admit the request, "
                "and others do not, or a backend does not exist."
                if decision.broken is not None
                else "The answer depends on the endpoint: some of the workloads admit the request, "
                "and others do not."
            )
        case Answer.DEPENDS if any(not share.admitted for share in chosen):
            return "The answer depends on the backend: some backends lack a ready workload."
        case Answer.DEPENDS:
            return (
                "The answer depends on the calling workload: only some of the client's sidecars "
                "know the Service."
            )


def _by_client(reply: LocalReply) -> str:
    """Return the sentence about an answer of the client's sidecar."""
    if reply.is_redirect:
        return f"The client's sidecar answers the request itself, with the redirect {reply.status}."
    outcome = f"answers {reply.status}" if reply.status else "ends the connection"
    return f"The request is refused: the client's sidecar {outcome}."


def _is_http(view: View, request: Request) -> bool:
    service = view.services.get(request.service)
    port = service.port(request.port) if service is not None else None
    return port is None or spoken(port, backing(view, request.service)).is_http
