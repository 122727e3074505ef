"""Why a request is allowed or not, step by step, with the objects behind each step and where they stand.

It asks the oracle and nothing else, so that what is explained is what is decided.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from catalog import decide as oracle
from catalog.decide import Answer, Decision, Place, Verdict
from catalog.explain_remedy import remedy
from catalog.explain_standing import narrowing, openness, waiting
from catalog.explain_steps import Step, origin_of
from catalog.ports import spoken
from catalog.requests import Request, headers_missed, method_fits, path_fits
from catalog.view import View
from mesh.policy import HTTPMatch, PolicyKey, RouteKind, TrafficSplit, TrafficTarget
from mesh.service import Service, ServiceKey, ServicePort

__all__ = ["Explanation", "Step", "explain"]

Manifest = dict[str, object]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The decision, its steps, and the manifests that would have to be added for a yes.

    `missing` is empty where the answer is yes, and where no policy would help; the last step says why.
    """

    request: Request
    decision: Decision
    steps: tuple[Step, ...]
    missing: tuple[Manifest, ...]


def explain(view: View, request: Request) -> Explanation:
    """Explain one request; pure."""
    decision = oracle.decide(view, request)
    missing = remedy(view, request)
    steps = (*_steps(view, request), _conclusion(decision, helps=bool(missing)))
    return Explanation(request, decision, steps, missing)


def _steps(view: View, request: Request) -> Iterator[Step]:
    service = view.services.get(request.service)
    if service is None:
        names = ", ".join(sorted(str(key) for key in view.services if key.name == request.service.name))
        yield Step(f"there is no Service {request.service}" + (f", but {names}" if names else ""))
        return
    origin = origin_of(view, "Service", service.key)
    port = service.port(request.port)
    if port is None:
        has = ", ".join(str(each.port) for each in service.ports) or "none"
        yield Step(f"Service {service.key} has no port {request.port}; it has {has}", origin)
        return
    yield Step(_port(view, service, port), origin)
    if request.client is None:
        yield Step("the caller has no certificate of the mesh: nobody answers, not even in permissive mode")
        return
    if request.client not in view.workloads_by_identity:
        yield Step(
            f"no workload has the identity {request.client}; what follows holds for the day one has it"
        )
    told = oracle.told(view, request.client, request.service)
    yield from narrowing(view, request.service, told)
    if not any(each.yes for each in told):
        return
    yield from openness(view, request.service.namespace)
    yield from _split(view, request, port)


def _port(view: View, service: Service, port: ServicePort) -> str:
    protocol = spoken(port, view.backing.get(service.key, ()))
    reasons = {"appProtocol": "its appProtocol", "name": "its name", "port": "its number"}
    why = reasons.get(port.protocol_source, "what the workloads declare, or else the default")
    return f"Service {service.key} has port {port.port}, which speaks {protocol.value}, by {why}"


def _split(view: View, request: Request, port: ServicePort) -> Iterator[Step]:
    split = oracle.split_for(view, request, port)
    if split is not None:
        shares = ", ".join(f"{each.service} {each.weight}" for each in split.backends)
        kind = "its matches fit and" if split.matches else "it"
        text = f"TrafficSplit {split.key} says who answers, for {kind} comes first: {shares}"
        yield Step(text, origin_of(view, "TrafficSplit", split.key))
    for other in view.splits_by_apex.get(request.service, ()):
        if split is None or other.key != split.key:
            yield Step(
                f"TrafficSplit {other.key} does not count here", origin_of(view, "TrafficSplit", other.key)
            )
    yield from _backends(view, request, port, split)


def _backends(view: View, request: Request, port: ServicePort, split: TrafficSplit | None) -> Iterator[Step]:
    reached = dict.fromkeys(key for key, _, _ in oracle.backends(view, request, port, split))
    for backend in split.backends if split is not None else ():
        key = ServiceKey(request.service.namespace, backend.service)
        if key not in reached:
            lacks = "lacks a port for it" if key in view.services else "does not exist"
            yield Step(f"{key} {lacks}; it gets no share")
    for key, their_port, weight in oracle.backends(view, request, port, split):
        found = oracle.places(view, key, their_port)
        asked = [place for place in found if oracle.may_answer(view, request, place)]
        share = f" (weight {weight})" if split is not None else ""
        yield from waiting(view, key, their_port)
        if not found:
            yield Step(f"nobody with a sidecar stands behind {key}{share}", origin_of(view, "Service", key))
        for place in found:
            none = "" if place in asked else "; it may be sent nothing, and gets no share"
            yield Step(
                f"{key}{share} is answered by {place[0].identity} at port {place[0].port}{none}",
                origin_of(view, "Service", key),
            )
            if not oracle.accepts_everyone(view, place[0].identity.namespace):
                yield from _place(view, request, place)


def _place(view: View, request: Request, place: tuple[Place, bool]) -> Iterator[Step]:
    found = tuple(oracle.verdicts(view, request, place))
    if not found:
        yield Step(f"no TrafficTarget has the destination {place[0].identity}", depth=1)
    for target, verdict in found:
        origin = origin_of(view, "TrafficTarget", target.key)
        yield Step(f"TrafficTarget {target.key} {_words(verdict, request, target)}", origin, depth=1)
        if verdict in (Verdict.ADMITS, Verdict.OTHER_REQUESTS):
            yield from _matches(view, request, target, is_http=place[1])


def _words(verdict: Verdict, request: Request, target: TrafficTarget) -> str:
    if verdict is Verdict.OTHER_CLIENTS:
        sources = ", ".join(map(str, target.sources)) or "nobody"
        return f"names other sources than {request.client}: {sources}"
    return verdict.value


def _matches(view: View, request: Request, target: TrafficTarget, *, is_http: bool) -> Iterator[Step]:
    for rule in target.rules:
        key = PolicyKey(target.key.namespace, rule.name)
        if rule.kind is RouteKind.TCP and key in view.tcp_routes:
            ports = ", ".join(map(str, view.tcp_routes[key].ports)) or "all ports"
            yield Step(f"TCPRoute {key}: {ports}", origin_of(view, "TCPRoute", key), depth=2)
        group = view.http_groups.get(key)
        if rule.kind is RouteKind.HTTP and group is not None and is_http:
            origin = origin_of(view, "HTTPRouteGroup", key)
            for match in group.matches:
                if not rule.matches or match.name in rule.matches:
                    text = f"HTTPRouteGroup {key}, match {match.name}: {_fit(match, request)}"
                    yield Step(text, origin, depth=2)


def _fit(match: HTTPMatch, request: Request) -> str:
    faults = []
    if not path_fits(match, request):
        faults.append(f"the path must be {match.path_regex} in full")
    if not method_fits(match, request):
        faults.append(f"the method must be one of {', '.join(match.methods)}")
    wanted = {each.name: each.regex for each in match.headers}
    faults.extend(f"header {name} must be {wanted[name]}" for name in headers_missed(match, request))
    return "does not fit, for " + " and ".join(faults) if faults else "fits"


def _conclusion(decision: Decision, *, helps: bool) -> Step:
    match decision.answer:
        case Answer.ALLOWED:
            return Step("allowed")
        case Answer.REFUSED:
            said = "refused: the server's sidecar answers 403, or closes the connection where it is TCP"
        case Answer.DEPENDS:
            said = "depends on who is chosen: some of the workloads admit it, and some do not"
        case Answer.UNREACHABLE:
            said = "unreachable: the client's sidecar knows nobody who might answer (no connection, or 503)"
    return Step(said if helps else f"{said}; no policy that is added would make it a yes")
