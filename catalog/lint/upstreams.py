"""Problems of UpstreamPolicies: a service that is not there, or of which they cannot hold."""

from collections.abc import Iterator

from catalog.lint.codes import Code
from catalog.lint.told import Place, meant
from catalog.policy.outbound import protocol_of
from catalog.policy.upstreams import policy_of
from catalog.store.view import View
from mesh.kinds import UPSTREAM_POLICY
from mesh.objects import ObjectKey
from mesh.problems import Problem
from mesh.service import Service
from mesh.upstreams import UpstreamPolicy


def problems(view: View, policy: UpstreamPolicy) -> Iterator[Problem]:
    """Yield the problems of an UpstreamPolicy."""
    place, key, field = Place(view, ObjectKey.of(UPSTREAM_POLICY, policy.key)), policy.service, "spec.service"
    service = view.services.get(key)
    if service is None:
        there = [each.name for each in view.services if each.namespace == key.namespace]
        wanted = f"there is no such Service{meant([key.name], there)}; it has no effect until there is"
        yield place.warning(Code.UNKNOWN_UPSTREAM_SERVICE, field, str(key), wanted)
        return
    counts = policy_of(view, key)
    if counts is not None and counts.key != policy.key:
        wanted = f"UpstreamPolicy {counts.key} for it is older or first by name; that one counts"
        yield place.error(Code.OVERRULED_UPSTREAM_POLICY, field, str(key), wanted)
        return
    if service.headless:
        wanted = "it is headless: the endpoint that is called answers, and none is chosen but behind a split"
        yield place.warning(Code.CALLED_BY_ADDRESS, field, str(key), wanted)
    yield from _of_key(place, policy, service)


def _of_key(place: Place, policy: UpstreamPolicy, service: Service) -> Iterator[Problem]:
    if policy.load.key is None:
        return
    silent = [
        str(port.port) for port in service.ports if not protocol_of(place.view, service.key, port).is_http
    ]
    if silent:
        wanted = f"no request is seen at port {', '.join(silent)}; there any endpoint is chosen"
        yield place.warning(Code.HASHES_NOTHING, "spec.loadBalancing.hash", "", wanted)
