"""Objects at fault: the object of the mesh to which a rejected unit or resource is attributed.

For a listener that a proxy cannot bind, the Gateway behind it is named too, and what the proxy lacks.
"""

import re
from collections.abc import Iterable
from typing import Final

from catalog.policy.provenance import InputObject
from catalog.policy.units import Calling, Unit
from catalog.policy.values.inbound import AccessRule, EveryoneInTheMesh
from catalog.policy.values.route_table import AppliedRoute, AppliedRule, AppliedSplit
from catalog.policy.values.terms import AccessLogPolicy
from catalog.store.gateway import gateways
from catalog.store.inventory import holder_of
from catalog.store.osm import retries, settings
from catalog.store.own_policies import upstream_policies
from catalog.store.smi import http_route_groups
from catalog.store.view import View
from meshwright.delivery.quarantine.findings import RejectedResource
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.kinds import (
    CLIENT_TRAFFIC_POLICY,
    EGRESS,
    ENDPOINT_SLICE,
    EXTERNAL_AUTHORIZATION,
    GATEWAY_TCP_ROUTE,
    GRPC_ROUTE,
    HTTP_ROUTE,
    HTTP_ROUTE_GROUP,
    INGRESS_BACKEND,
    MESH_CONFIG,
    MUTUAL_TLS,
    NAMESPACE,
    RETRY,
    ROUTE_POLICY,
    SERVICE,
    TCP_ROUTE,
    TELEMETRY,
    TLS_ROUTE,
    TRAFFIC_SPLIT,
    TRAFFIC_TARGET,
    UPSTREAM_POLICY,
    UPSTREAM_TRAFFIC_SETTING,
    WORKLOAD,
    Kind,
)
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.limits import ConnectionLimits, RateLimits
from meshwright.mesh.policies.retries import Retries
from meshwright.mesh.policies.smi import HTTPMatch, PolicyKey
from meshwright.mesh.policies.upstreams import HashKey, HealthCheck, OutlierDetectionOverride
from meshwright.mesh.workload import Edge
from meshwright.sidecars.contract.reasons import Reason
from meshwright.sidecars.layout import FIRST_FREE_PORT, LOW_PORT
from xds.protocol.resources.resource import ENDPOINT, LISTENER, TypeUrl

_POLICIES: Final = (
    HTTP_ROUTE_GROUP,
    EGRESS,
    TRAFFIC_SPLIT,
    HTTP_ROUTE,
    GRPC_ROUTE,
    TLS_ROUTE,
    GATEWAY_TCP_ROUTE,
    UPSTREAM_TRAFFIC_SETTING,
    UPSTREAM_POLICY,
    RETRY,
    ROUTE_POLICY,
    TCP_ROUTE,
    TRAFFIC_TARGET,
    INGRESS_BACKEND,
    MUTUAL_TLS,
    TELEMETRY,
    EXTERNAL_AUTHORIZATION,
    CLIENT_TRAFFIC_POLICY,
)

_PLACES: Final = (WORKLOAD, ENDPOINT_SLICE, SERVICE)
_PORT: Final = re.compile(r"\|([0-9]{1,5})$")
"""The port in the name of a listener with an own port, for example `edge-listener|192.0.2.10|443`."""


def at_fault(view: View, unit: Unit, behind: Iterable[InputObject]) -> tuple[ObjectKey | None, str]:
    """Return the object of a unit of policy and the field; the field is empty for a whole object."""
    match unit:
        case AccessRule(by):
            return by, ""
        case AppliedSplit() | AppliedRule():
            return unit.object_key, ""
        case AppliedRoute():
            return unit.object_key, str(unit.place)
        case (
            Retries()
            | RateLimits()
            | ConnectionLimits()
            | OutlierDetectionOverride()
            | HealthCheck()
            | HashKey()
        ):
            return _saying(view, unit, behind), ""
        case AccessLogPolicy(by) if by is not None:
            return ObjectKey.from_name(TELEMETRY, by), ""
        case HTTPMatch():
            return _route_group(view, unit, behind)
        case EveryoneInTheMesh():
            kinds = (NAMESPACE, MESH_CONFIG)
            result = (
                input_object.key for kind in kinds for input_object in behind if input_object.key.kind == kind
            )
            return next(result, None), ""
        case _:
            return None, ""


def edited(rejected: RejectedResource, behind: Iterable[InputObject]) -> tuple[ObjectKey, str] | None:
    """Return the edited object because of which an unchanged match is rejected, for example a TrafficTarget.

    Return None if the error message quotes the match or the HTTPRouteGroup was edited, because then the group
    is at fault.
    """
    unit, changed = rejected.unit, rejected.changed
    if not isinstance(unit, HTTPMatch) or any(object_key.kind == HTTP_ROUTE_GROUP for object_key in changed):
        return None
    texts = (unit.path_regex, *(header.regex for header in unit.headers))
    if any(text and text in rejected.message for text in texts):
        return None
    kinds = (EGRESS, TRAFFIC_TARGET, TRAFFIC_SPLIT, ROUTE_POLICY, INGRESS_BACKEND, MUTUAL_TLS)
    result = (
        input_object.key
        for input_object in behind
        if input_object.key in changed and input_object.key.kind in kinds
    )
    return next(((key, "") for key in sorted(result)), None)


def _route_group(view: View, match: HTTPMatch, behind: Iterable[InputObject]) -> tuple[ObjectKey | None, str]:
    there = {input_object.key for input_object in behind}
    result = [
        (ObjectKey.from_name(HTTP_ROUTE_GROUP, key), group.matches.index(match))
        for key, group in http_route_groups(view).values_unrecorded().items()
        if match in group.matches
    ]
    first = min(result, key=lambda item: (item[0] not in there, item[0]), default=None)
    return (None, "") if first is None else (first[0], f"spec.matches[{first[1]}]")


def _saying(view: View, unit: Calling, behind: Iterable[InputObject]) -> ObjectKey | None:
    """Return the object with this part; of several equal ones, prefer an object behind the resource.

    A resource may have only some of the rates or health checks of an object. Then the object of this kind
    behind the resource is returned.
    """
    there = {input_object.key for input_object in behind}
    kind, text = _sayings(view, unit)
    keys = [ObjectKey.from_name(kind, key) for key, parts in text if unit in parts]
    if not keys and isinstance(unit, RateLimits | HealthCheck):
        keys = [key for key in there if key.kind == kind]
    return min(keys, key=lambda object_key: (object_key not in there, object_key), default=None)


def _sayings(view: View, unit: Calling) -> tuple[Kind, list[tuple[PolicyKey, tuple[object, ...]]]]:
    """Return the kind of objects with such units, and the units of each object of this kind."""
    match unit:
        case RateLimits() | ConnectionLimits():
            limiting = settings(view).values_unrecorded().items()
            return UPSTREAM_TRAFFIC_SETTING, [
                (key, (setting.rates, setting.connections)) for key, setting in limiting
            ]
        case OutlierDetectionOverride() | HealthCheck() | HashKey():
            reaching = upstream_policies(view).values_unrecorded().items()
            parts = [(key, (policy.ejecting, policy.checking, policy.load.key)) for key, policy in reaching]
            return UPSTREAM_POLICY, [*parts]
        case _:
            return RETRY, [
                (key, (retry.retries,)) for key, retry in retries(view).values_unrecorded().items()
            ]


def part_name(unit: Unit, key: ObjectKey | None) -> str:
    """Return the name of a unit of policy, for example `match one of HTTPRouteGroup shop/paths`."""
    owner = "the policy" if key is None else str(key)
    match unit:
        case HTTPMatch(name) if key is not None and key.kind != HTTP_ROUTE_GROUP:
            return f"match {name}, which {owner} uses"
        case HTTPMatch(name):
            return f"match {name} of {owner}"
        case AppliedRule():
            return f"a rule of {owner}"
        case AppliedRoute():
            return f"a match of {unit.rule_name} of {owner}"
        case RateLimits():
            return f"the rate limits of {owner}"
        case ConnectionLimits():
            return f"the connection limits of {owner}"
        case OutlierDetectionOverride():
            return f"the outlier detection of {owner}"
        case HealthCheck():
            return f"the health check of {owner}"
        case HashKey():
            return f"the hash key of {owner}"
        case AccessLogPolicy():
            return f"the access log of {owner}"
        case EveryoneInTheMesh():
            return f"the permissive mode of {owner}"
        case _:
            return owner


def unlikelihood(type_url: TypeUrl, made_from: InputObject) -> int:
    """Return the rank of an object's kind as the cause of a rejection; 0 is the most likely kind.

    Listeners and endpoints mostly hold addresses and ports, so workloads and Services are first. Other
    resources mostly hold policies, so kinds with values passed nearly unchanged to proxies are first.
    """
    places_first = type_url in (LISTENER, ENDPOINT)
    kinds = (*_PLACES, *_POLICIES) if places_first else (*_POLICIES, *reversed(_PLACES))
    kind = made_from.key.claim.kind
    return kinds.index(kind) if kind in kinds else len(kinds)


def listener_clauses(view: View, rejected: RejectedResource) -> tuple[str, ...]:
    """Return the Gateway's listener behind a rejected listener, and what the proxy lacks, if known."""
    match = _PORT.search(rejected.name) if rejected.type_url == LISTENER else None
    if match is None:
        return ()
    port = int(match[1])
    lacks_right = rejected.reason is Reason.PERMISSION and port < FIRST_FREE_PORT
    clauses = (_of_gateway(view, rejected, port), LOW_PORT if lacks_right else "")
    return tuple(filter(None, clauses))


def _of_gateway(view: View, rejected: RejectedResource, port: int) -> str:
    workload = holder_of(view, ProxyName.parse(rejected.proxy))
    if workload is None or not isinstance(workload.interception, Edge):
        return ""
    key = PolicyKey(workload.key.namespace, workload.interception.gateway)
    gateway = gateways(view).values_unrecorded().get(key)
    names = [listener.name for listener in gateway.listeners if listener.port == port] if gateway else []
    word = "listener" if len(names) == 1 else "listeners"
    return f"it serves {word} {', '.join(names)} (port {port}) of Gateway {key}" if names else ""
