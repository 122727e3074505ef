"""RoutePolicy, policy.meshwright.dev v1alpha1: timeouts, headers, faults and mirrors for requests."""

from datetime import timedelta
from typing import Final

from meshwright.mesh.names import Namespace
from meshwright.mesh.policies.routing import Abort, Delay, Mirror, RouteActions, RoutePolicy, RouteRule
from meshwright.mesh.policies.smi import PolicyKey, RouteKind, Rule
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields
from meshwright.specs.manifest import Manifest
from meshwright.specs.values.durations import WAIT_RULE, wait
from meshwright.specs.values.headers import changes
from meshwright.specs.values.references import own_service, route_group

STATUS_RULE: Final = "must be an HTTP status from 200 to 599"
NOTHING_SAID: Final = (
    "the rule lacks an action, so requests that match do not change; add timeout, headers, fault or mirror"
)


def route_policy(manifest: Manifest) -> RoutePolicy:
    """Read a RoutePolicy; the service and the HTTPRouteGroups are of its own namespace."""
    fields = manifest.spec()
    service = own_service(fields, "service", manifest.namespace)
    rules = fields.sections("rules", required=True)
    if fields.has("rules") and not rules:
        fields.wrong("rules", "must have at least one rule", Code.EMPTY)
    route_rules = tuple(_rule(rule, manifest.namespace) for rule in rules)
    fields.close()
    return RoutePolicy(
        key=PolicyKey(manifest.namespace, manifest.key.name),
        service=service,
        rules=route_rules,
        created=manifest.metadata.text("creationTimestamp") or "",
    )


def _rule(fields: Fields, namespace: Namespace) -> RouteRule:
    sections = fields.sections("matches")
    # Read like an absent list, an empty one would apply the rule to all requests.
    if fields.has("matches") and not sections:
        fields.wrong(
            "matches",
            "must not be empty; name an HTTPRouteGroup, or leave matches out if the rule is for all requests",
            Code.EMPTY,
        )
    matches = tuple(_match(section) for section in sections)
    actions = _actions(fields, namespace)
    fields.close()
    if actions == RouteActions() and not fields.notes.refused:
        fields.notes.warn(Code.EMPTY, fields.path, NOTHING_SAID)
    return RouteRule(matches, actions)


def _match(fields: Fields) -> Rule:
    """Read a reference to an HTTPRouteGroup, or to some of its matches."""
    name = route_group(fields)
    matches = fields.texts("matches")
    fields.close()
    return Rule(RouteKind.HTTP, name, tuple(sorted(set(matches))))


def _actions(fields: Fields, namespace: Namespace) -> RouteActions:
    timeout, headers, fault = (fields.section(item) for item in ("timeout", "headers", "fault"))
    delay, abort, mirror = fault.section("delay"), fault.section("abort"), fields.section("mirror")
    route_actions = RouteActions(
        timeout=wait(timeout, "request"),
        request_headers=changes(headers.section("request")),
        response_headers=changes(headers.section("response")),
        delay=_delay(delay) if fault.has("delay") else None,
        abort=_abort(abort) if fault.has("abort") else None,
        mirror=_mirror(namespace, mirror) if fields.has("mirror") else None,
    )
    for item in (timeout, headers, fault):
        item.close()
    return route_actions


def _mirror(namespace: Namespace, fields: Fields) -> Mirror:
    mirror = Mirror(own_service(fields, "service", namespace).name, fields.percent("percent"))
    fields.close()
    return mirror


def _delay(fields: Fields) -> Delay:
    if not fields.has("duration"):
        fields.required_text("duration", WAIT_RULE)
    delay = Delay(fields.percent("percent"), wait(fields, "duration") or timedelta(seconds=1))
    fields.close()
    return delay


def _abort(fields: Fields) -> Abort:
    if not fields.has("status"):
        fields.notes.refuse(Code.MISSING, fields.at("status"), f"is missing; {STATUS_RULE}")
    status = fields.whole("status", 200, 599, default=503) or 503
    abort = Abort(fields.percent("percent"), status)
    fields.close()
    return abort
