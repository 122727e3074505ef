"""Problems of RoutePolicies: missing Services and matches, and rules that are never used."""

from collections.abc import Iterator

from catalog.lint.codes import Code
from catalog.lint.gateway import out_of_force
from catalog.lint.wording import Place, Suggestions, meant
from catalog.policy.access import unknown_matches
from catalog.policy.objects.routing import mirrored, policy_of
from catalog.relations.backends.protocols import protocol_of
from catalog.store.smi import http_route_groups
from catalog.store.view import View
from meshwright.mesh.kinds import ROUTE_POLICY
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.routing import RoutePolicy, RouteRule
from meshwright.mesh.policies.smi import PolicyKey, Rule
from meshwright.mesh.problems.problem import Problem
from meshwright.mesh.service import ServiceKey


def problems(view: View, policy: RoutePolicy) -> Iterator[Problem]:
    """Yield the problems of a RoutePolicy."""
    place = Place(view, ObjectKey.from_name(ROUTE_POLICY, policy.key))
    yield from _of_service(place, policy)
    yield from out_of_force.problems(place, "spec.service", policy.service)
    services = Suggestions(lambda: _services(view, policy.service.namespace))
    groups = Suggestions(lambda: _groups(view, policy.key.namespace))
    for index, rule in enumerate(policy.rules):
        yield from _of_mirror(place, f"spec.rules[{index}].mirror.service", policy, rule, services)
        for number, reference in enumerate(rule.matches):
            yield from _of_match(place, f"spec.rules[{index}].matches[{number}]", reference, groups)
    first = next((n for n, rule in enumerate(policy.rules) if not rule.matches), len(policy.rules))
    for index in range(first + 1, len(policy.rules)):
        wanted = (
            f"This rule never applies, because rules[{first}] before it lacks matches and applies to all "
            f"requests. Move rules[{first}] to the end."
        )
        yield place.warning(Code.ROUTE_RULE_NOT_ASKED, f"spec.rules[{index}]", "", wanted)


def _of_service(place: Place, policy: RoutePolicy) -> Iterator[Problem]:
    view, key, field = place.view, policy.service, "spec.service"
    service = view.services.get(key)
    if service is None:
        there = [service_key.name for service_key in view.services if service_key.namespace == key.namespace]
        wanted = (
            f"This Service does not exist{meant([key.name], there)}, so this policy is not in force. Create "
            "the Service, or correct the name."
        )
        yield place.warning(Code.UNKNOWN_ROUTED_SERVICE, field, str(key), wanted)
        return
    counts = policy_of(view, key)
    if counts is not None and counts.key != policy.key:
        wanted = (
            f"RoutePolicy {counts.key} is for the same Service and takes precedence, because "
            "it is older or first by name. Delete one of the two."
        )
        yield place.error(Code.OVERRULED_ROUTE_POLICY, field, str(key), wanted)
    elif not any(protocol_of(view, key, port).is_http for port in service.ports):
        wanted = (
            "The Service lacks a port with HTTP, and sidecars see requests only on HTTP ports, so this "
            "policy is not in force. Set appProtocol: http in the Service if a "
            "port speaks HTTP."
        )
        yield place.warning(Code.ROUTES_NO_REQUESTS, field, str(key), wanted)


def _services(view: View, namespace: Namespace) -> Iterator[str]:
    return (service.name for service in view.services if service.namespace == namespace)


def _groups(view: View, namespace: Namespace) -> Iterator[str]:
    return (key.name for key in http_route_groups(view).values_unrecorded() if key.namespace == namespace)


def _of_mirror(
    place: Place, field: str, policy: RoutePolicy, rule: RouteRule, services: Suggestions
) -> Iterator[Problem]:
    view, mirror = place.view, rule.actions.mirror
    called = view.services.get(policy.service)
    if mirror is None or called is None:
        return
    key = ServiceKey(policy.service.namespace, mirror.service)
    if key not in view.services:
        wanted = (
            f"This Service does not exist{services.hint(key.name)}, so requests are not copied. Create "
            "the Service, or correct the name."
        )
        yield place.warning(Code.NO_MIRROR, field, key.name, wanted)
        return
    ports = (
        service_port for service_port in called.ports if protocol_of(view, called.key, service_port).is_http
    )
    for port in ports:
        if mirrored(view, called.key, port, rule.actions) is None:
            wanted = (
                f"The Service is headless, or has neither port {port.port} nor a port with "
                f"the same name as in {called.key}, so requests are not copied. Use another Service."
            )
            yield place.warning(Code.NO_MIRROR, field, key.name, wanted)
            return


def _of_match(place: Place, field: str, reference: Rule, known: Suggestions) -> Iterator[Problem]:
    groups, namespace = http_route_groups(place.view), place.key.namespace
    group = groups.get(PolicyKey(namespace, reference.name))
    if group is None:
        wanted = (
            f"This HTTPRouteGroup does not exist in this namespace{known.hint(reference.name)}, so this "
            "entry is not in force. Create the group, or correct the name."
        )
        yield place.warning(Code.UNKNOWN_ROUTE_MATCH, f"{field}.name", reference.name, wanted)
        return
    if unknown := unknown_matches(place.view, namespace, reference):
        names = [match.name for match in group.matches]
        wanted = (
            f"HTTPRouteGroup {reference.name} does not have this match{meant(unknown, names)}, so this "
            "entry is not in force. Add the match to the group, or correct the name."
        )
        yield place.warning(Code.UNKNOWN_ROUTE_MATCH, f"{field}.matches", ", ".join(unknown), wanted)
