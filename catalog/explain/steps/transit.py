"""The steps about what sidecars make of a request before they judge it."""

from collections.abc import Iterator

from catalog.explain.steps.step import Step
from catalog.oracle.decide import LocalReply
from catalog.oracle.request.request import Request, path_of
from catalog.oracle.request.upgrades import offered
from catalog.relations.backends.ports import spoken
from catalog.relations.backends.workloads import backing
from catalog.store.view import View
from meshwright.mesh.service import ServicePort


def of_client(request: Request, arrived: Request | LocalReply) -> Iterator[Step]:
    """Yield what the client's sidecar makes of the path; nothing where that is what was written."""
    match arrived:
        case LocalReply(status, why):
            yield Step(f"the client's sidecar {_answers(status)} by itself, whatever policy says: {why}")
        case _ if path_of(arrived) != path_of(request):
            yield Step(f"the client's sidecar makes {path_of(arrived)} of the path, and splits judge that")


def of_upgrade(view: View, request: Request, port: ServicePort) -> Iterator[Step]:
    """Yield which protocols of the request's header Upgrade sidecars ignore, and which setting says so."""
    if not spoken(port, backing(view, request.service)).is_http:
        return
    passing = view.settings.long_lived.upgrades
    if ignored := offered(request, passing).ignored:
        which = f"{', '.join(passing)} passes" if passing else "none passes"
        yield Step(
            f"the client's sidecar ignores the offer to upgrade to {', '.join(ignored)}, and the application "
            f"does not see it: {which} (setting http_upgrades)"
        )


def of_server(request: Request, arrived: Request | LocalReply) -> Iterator[Step]:
    """Yield what the sidecar of who answers makes of what the client's passes on, where it differs."""
    match arrived:
        case LocalReply(status, why):
            yield Step(f"its sidecar admits no such request, and {_answers(status)}: {why}", depth=1)
        case _ if path_of(arrived) != path_of(request):
            yield Step(f"its sidecar makes {path_of(arrived)} of the path, and rules judge that", depth=1)


def _answers(status: int) -> str:
    return f"answers {status}" if status else "ends the connection"
