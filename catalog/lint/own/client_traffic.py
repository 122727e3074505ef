"""Problems of ClientTrafficPolicies: missing Gateways, precedence, and settings without effect."""

from collections.abc import Iterator
from typing import Final

from catalog.lint.codes import Code
from catalog.lint.servers import behind_sidecars
from catalog.lint.wording import Place
from catalog.relations.gateways.client_traffic import missing_targets, overruled, policy_at
from catalog.relations.gateways.listeners import listener_verdicts
from catalog.relations.gateways.verdicts import ListenerVerdict
from catalog.store.gateway import gateways
from catalog.store.objects import origin_of
from catalog.store.view import View
from meshwright.mesh.gateway.gateways import Gateway, ListenerProtocol
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.kinds import CLIENT_TRAFFIC_POLICY, GATEWAY
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import InCluster
from meshwright.mesh.policies.client_traffic import ClientTrafficPolicy
from meshwright.mesh.problems.problem import Problem

_OF_REQUESTS: Final = ("headers", "http2", "path", "httpRoutes")
"""Fields without effect where a proxy sees connections alone."""

_PROXY_PROTOCOL: Final = ("proxy-protocol", "proxyprotocol", "proxy_protocol")
"""Parts of the annotations by which load balancers are told to send the PROXY protocol."""


def problems(view: View, policy: ClientTrafficPolicy) -> Iterator[Problem]:
    """Yield the problems of a ClientTrafficPolicy."""
    place = Place(view, ObjectKey.from_name(CLIENT_TRAFFIC_POLICY, policy.key))
    for missing in missing_targets(view, policy):
        wanted = (
            f"{missing.reason}, so this reference is not in force. Correct the name, or create the object."
        )
        yield place.error(Code.UNKNOWN_CLIENT_TARGET, missing.field, missing.name, wanted)
    for lost in overruled(view, policy):
        wanted = (
            f"ClientTrafficPolicy {lost.by} is in force instead{lost.at}, because {lost.why}. "
            "Delete one of the two, or name different listeners."
        )
        yield place.error(Code.OVERRULED_CLIENT_TRAFFIC, lost.field, str(lost.by), wanted)
    yield from _without_requests(place, policy)
    yield from _without_header(place, policy)
    yield from behind_sidecars(view, place.key, _counting(policy))


def _without_requests(place: Place, policy: ClientTrafficPolicy) -> Iterator[Problem]:
    """Yield a problem for each field of requests, if no listener of the policy looks at requests."""
    found = [verdict.listener for verdict in _in_force(place.view, policy)]
    if not found or any(it.protocol in (ListenerProtocol.HTTP, ListenerProtocol.HTTPS) for it in found):
        return
    for field in _OF_REQUESTS:
        if field in policy.fields:
            names = ", ".join(sorted(listener.name for listener in found))
            wanted = (
                f"The proxy forwards the connections of listener {names} without looking at requests, so "
                "this field has no effect. Delete the field, or name a listener with protocol HTTP or HTTPS."
            )
            yield place.warning(Code.CLIENT_FIELD_NOT_USED, f"spec.{field}", "", wanted)


def _without_header(place: Place, policy: ClientTrafficPolicy) -> Iterator[Problem]:
    """Yield a problem for each Gateway of a cluster whose Service asks for no PROXY protocol."""
    if not policy.port.proxy_protocol:
        return
    for index, target in enumerate(policy.targets):
        gateway = gateways(place.view).get(policy.gateway_of(target))
        if gateway is None or not _is_in_cluster(place.view, gateway) or _asks_for_header(gateway):
            continue
        wanted = (
            f"No annotation in spec.infrastructure.annotations of Gateway {gateway.key} asks the load "
            "balancer for the PROXY protocol, and the gateway closes connections without its header. Add the "
            "annotation of your load balancer, or remove proxyProtocol."
        )
        yield place.warning(
            Code.PROXY_PROTOCOL_NOT_SENT, f"spec.targetRefs[{index}].name", target.gateway, wanted
        )


def _in_force(view: View, policy: ClientTrafficPolicy) -> Iterator[ListenerVerdict]:
    for gateway in dict.fromkeys(map(policy.gateway_of, policy.targets)):
        for verdict in listener_verdicts(view, gateway):
            found = policy_at(view, gateway, verdict)
            if found is not None and found.key == policy.key:
                yield verdict


def _is_in_cluster(view: View, gateway: Gateway) -> bool:
    return isinstance(origin_of(view, ObjectKey.from_name(GATEWAY, gateway.key)), InCluster)


def _asks_for_header(gateway: Gateway) -> bool:
    texts = [text.lower() for pair in gateway.infrastructure.annotations for text in pair]
    return any(word in text for text in texts for word in _PROXY_PROTOCOL)


def _counting(policy: ClientTrafficPolicy) -> Iterator[tuple[str, HostPort]]:
    limits = policy.settings.rates.limits
    for protocol, counted in (("tcp", limits.counted_connections), ("http", limits.counted_requests)):
        if counted is not None:
            yield f"spec.rateLimit.global.{protocol}.rateLimitService.host", counted.asked.server
