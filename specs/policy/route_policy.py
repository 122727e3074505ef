"""RoutePolicy, policy.meshwright.dev v1alpha1: what becomes of requests on their way to a service."""

from typing import Final

from mesh.policy import PolicyKey, RouteKind, Rule
from mesh.routing import RouteActions, RoutePolicy, RouteRule
from specs.codes import Code
from specs.durations import wait
from specs.fields import Fields
from specs.manifest import Manifest
from specs.references import own_service, route_group

NOTHING_SAID: Final = "says nothing, so requests that fit it are as without it"


def route_policy(manifest: Manifest) -> RoutePolicy:
    """Read a RoutePolicy; the service and the HTTPRouteGroups are of its own namespace."""
    fields = manifest.spec()
    service = own_service(fields, "service", manifest.namespace)
    rules = fields.sections("rules", required=True)
    if fields.has("rules") and not rules:
        fields.wrong("rules", "must have at least one rule", Code.EMPTY)
    found = tuple(_rule(each) for each in rules)
    fields.close()
    return RoutePolicy(
        key=PolicyKey(manifest.namespace, manifest.key.name),
        service=service,
        rules=found,
        created=manifest.metadata.text("creationTimestamp") or "",
    )


def _rule(fields: Fields) -> RouteRule:
    sections = fields.sections("matches")
    if fields.has("matches") and not sections:
        fields.wrong(
            "matches", "must name an HTTPRouteGroup; absent, the rule is for all requests", Code.EMPTY
        )
    matches = tuple(_match(each) for each in sections)
    actions = _actions(fields)
    fields.close()
    if actions == RouteActions() and not fields.notes.refused:
        fields.notes.warn(Code.EMPTY, fields.path, NOTHING_SAID)
    return RouteRule(matches, actions)


def _match(fields: Fields) -> Rule:
    """Read a reference to an HTTPRouteGroup, or to those of its matches that are named."""
    name = route_group(fields)
    matches = fields.texts("matches")
    fields.close()
    return Rule(RouteKind.HTTP, name, tuple(sorted(set(matches))))


def _actions(fields: Fields) -> RouteActions:
    timeout = fields.section("timeout")
    request = wait(timeout, "request")
    timeout.close()
    return RouteActions(timeout=request)
