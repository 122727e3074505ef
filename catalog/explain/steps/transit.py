"""Steps about changes of a request by sidecars, and about requests refused by the sidecars themselves."""

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
    """Yield a step if the client's sidecar changes the request's path or answers the request itself."""
    match arrived:
        case LocalReply(status, why):
            yield Step(f"The client's sidecar {_answers(status)} without regard to policy: {why}.")
        case _ if path_of(arrived) != path_of(request):
            yield Step(
                f"The client's sidecar changes the path to {path_of(arrived)}, and "
                "TrafficSplits are applied to that path."
            )


def of_upgrade(view: View, request: Request, port: ServicePort) -> Iterator[Step]:
    """Yield a step about the protocols in the Upgrade header that the client's sidecar ignores."""
    if not spoken(port, backing(view, request.service)).is_http:
        return
    passing = view.settings.long_lived.upgrades
    if ignored := offered(request, passing).ignored:
        which = f"sidecars pass on only {', '.join(passing)}" if passing else "sidecars pass on no upgrade"
        yield Step(
            f"The client's sidecar ignores the offer to upgrade to {', '.join(ignored)}, and the "
            f"application does not see the offer: {which} (setting http_upgrades)."
        )


def of_server(request: Request, arrived: Request | LocalReply) -> Iterator[Step]:
    """Yield a step if the server's sidecar changes the request's path or refuses the request."""
    match arrived:
        case LocalReply(status, why):
            yield Step(f"The server's sidecar refuses such a request and {_answers(status)}: {why}.", depth=1)
        case _ if path_of(arrived) != path_of(request):
            yield Step(
                (
                    f"The server's sidecar changes the path to {path_of(arrived)}, and rules "
                    "are applied to that path."
                ),
                depth=1,
            )


def _answers(status: int) -> str:
    return f"answers {status}" if status else "ends the connection"
