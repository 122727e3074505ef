"""Steps about routes of the Gateway API: the deciding match and why, other fitting matches, and shares."""

from collections.abc import Iterator

from catalog.explain.steps.step import Step, origin_of_object
from catalog.oracle.gateway import RoutedRequest, RouteMatch, fitting_matches, routed, routes_for
from catalog.oracle.request.request import Request, path_of
from catalog.relations.attachment import parent_verdicts
from catalog.relations.references import resolved_rules
from catalog.store.gateway import routes_by_parent
from catalog.store.view import View
from meshwright.mesh.kinds import GRPC_ROUTE, HTTP_ROUTE
from meshwright.mesh.matching import Exact, GrpcMethod, Prefix, Regex
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.service import ServicePort


def of_routes(view: View, request: Request, port: ServicePort) -> Iterator[Step]:
    """Yield the steps about the routes that name a Service as parent; none if no route does."""
    deciding = routes_for(view, request, port)
    for key in routes_by_parent(view).get(request.service, ()):
        if key not in deciding and (why := _without_part(view, key, request, port, deciding)):
            yield Step(f"{key} {why}.", origin_of_object(view, key))
    found = routed(view, request, port)
    if found is None:
        return
    fitting = fitting_matches(view, request, port)
    for key in deciding:
        if all(item.key != key for item in fitting):
            yield Step(f"No rule of {key} fits the request.", origin_of_object(view, key))
    yield from decision_of(view, fitting)
    yield from _outcome(view, request, found)


def _without_part(
    view: View, key: ObjectKey, request: Request, port: ServicePort, deciding: tuple[ObjectKey, ...]
) -> str:
    """Return the clause with the reason why a route does not decide the calls to a port."""
    verdicts = [item for item in parent_verdicts(view, key) if item.service == request.service]
    if not any(verdict.accepted for verdict in verdicts):
        first = verdicts[0]
        return f"is not in force at this Service ({first.reason}): {first.message}"
    if not any(port.port in verdict.ports for verdict in verdicts):
        return f"is not in force at port {port.port}"
    if key.namespace == request.service.namespace and deciding:
        return f"does not count, because routes of namespace {deciding[0].namespace} decide its own calls"
    return f"does not count, because it decides only the calls of namespace {key.namespace}"


def decision_of(view: View, fitting: tuple[RouteMatch, ...]) -> Iterator[Step]:
    """Yield the steps about the deciding match, and about the others that fit too."""
    if not fitting:
        return
    first, *others = fitting
    if _is_of_requests(first):
        text = f"{_named(first)}, decides the request: {_condition(first)}."
    else:
        text = f"{_named(first)}, decides the connection."
    yield Step(text, origin_of_object(view, first.key))
    for other in others:
        text = f"{_named(other)}, fits too, but does not count: {_precedence(first, other)}."
        yield Step(text, origin_of_object(view, other.key), depth=1)


def _outcome(view: View, request: Request, found: RoutedRequest) -> Iterator[Step]:
    """Yield the steps about what the deciding rule does with the request."""
    # A request without any fitting match has an answer too: 404.
    if found.found is None or found.reply is not None:
        if found.reply is not None:
            status = found.reply.status
            reply = f"answers {status}" if status else "closes the connection"
            yield Step(f"The client's sidecar {reply}: {found.reply.why}.")
        return
    backends = found.found.rule_value.backends
    shares = ", ".join(
        f"{item.to.namespace}/{item.to.name}:{item.to.port} {item.weight}" for item in backends
    )
    yield Step(f"The rule chooses the backend by weight: {shares}.", origin_of_object(view, found.found.key))
    for broken in resolved_rules(view, found.found.key)[found.found.rule].unresolved:
        outcome = f"answered with {found.broken}" if found.broken else "closed"
        yield Step(f"{broken.field}: {broken.message}, so its share is {outcome}.", depth=1)
    # Backends may have filters of their own, so their requests may differ.
    paths = dict.fromkeys(path_of(way.request) for way in found.ways if way.weight)
    for path in paths:
        if path != path_of(request):
            yield Step(f"The client's sidecar changes the path to {path}, which the rules of servers see.")


def _named(item: RouteMatch) -> str:
    # A rule for connections has no matches in its manifest.
    return f"{item.key}, {item.place if _is_of_requests(item) else f'spec.rules[{item.rule}]'}"


def _is_of_requests(item: RouteMatch) -> bool:
    return item.key.kind in (GRPC_ROUTE, HTTP_ROUTE)


def _condition(item: RouteMatch) -> str:
    """Return the condition of a match as a clause, for example `its path begins with /books`."""
    match = item.request_match
    conditions = [
        *_path_conditions(match.path),
        *((f"its method is {' or '.join(match.methods)}",) if match.methods else ()),
        *(f"its header {field.name} fits" for field in match.headers),
        *(f"its query parameter {field.name} fits" for field in match.parameters),
    ]
    return " and ".join(conditions) if conditions else "the match is for all requests"


def _path_conditions(path: Exact | Prefix | Regex | GrpcMethod | None) -> Iterator[str]:
    match path:
        case Exact(text):
            yield f"its path is {text}"
        case Prefix(text):
            yield f"its path begins with {text}"
        case Regex(regex):
            yield f"its path fits the expression {regex}"
        case GrpcMethod(service, method):
            yield f"it calls {service or 'any service'}/{method or 'any method'}"
        case None:
            return


def _precedence(first: RouteMatch, other: RouteMatch) -> str:
    """Return the criterion by which one fitting match precedes another, the first that differs."""
    criteria = _GRPC if first.key.kind == GRPC_ROUTE else _HTTP
    for mine, its, clause in zip(first.rank, other.rank, (*criteria, *_LAST), strict=False):
        if mine != its:
            return f"the first one {clause}"
    return "the first one comes first"


_HTTP = (
    "has a more specific kind of path",
    "has a longer prefix",
    "names a method",
    "has more headers",
    "has more query parameters",
)
_GRPC = ("has a longer service", "has a longer method", "has more headers", "", "")
_LAST = (
    "is older",
    "comes first by namespace and name",
    "is in an earlier rule",
    "is earlier in its rule",
)
