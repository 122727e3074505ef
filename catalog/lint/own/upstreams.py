"""Problems of UpstreamPolicies: a missing Service, or one to which a part of the policy cannot apply."""

from collections.abc import Iterator
from typing import Final

from catalog.lint.codes import Code
from catalog.lint.wording import Place, meant
from catalog.oracle.decide import admitting, places
from catalog.oracle.request.request import Request
from catalog.policy.destinations import health_check_protocol
from catalog.policy.inbound import access
from catalog.policy.objects.upstreams import policy_of
from catalog.policy.values.inbound import OnlyRules, admitted
from catalog.relations.backends.protocols import protocol_of
from catalog.store.view import View
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import UPSTREAM_POLICY
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.upstreams import HealthCheck, UpstreamPolicy
from meshwright.mesh.problems.problem import Problem
from meshwright.mesh.service import Protocol, Service, ServiceKey, ServicePort

_NAMED: Final = 3
"""Maximum number of callers named in a problem."""
_SPOKEN: Final = {Protocol.HTTP: "HTTP", Protocol.GRPC: "gRPC"}


def problems(view: View, policy: UpstreamPolicy) -> Iterator[Problem]:
    """Yield the problems of an UpstreamPolicy."""
    place, key, field = (
        Place(view, ObjectKey.from_name(UPSTREAM_POLICY, policy.key)),
        policy.service,
        "spec.service",
    )
    service = view.services.get(key)
    if service is None:
        there = [service_key.name for service_key in view.services if service_key.namespace == key.namespace]
        wanted = (
            f"This Service does not exist{meant([key.name], there)}, so this policy is not in force. Create "
            "the Service, or correct the name."
        )
        yield place.warning(Code.UNKNOWN_UPSTREAM_SERVICE, field, str(key), wanted)
        return
    counts = policy_of(view, key)
    if counts is not None and counts.key != policy.key:
        wanted = (
            f"UpstreamPolicy {counts.key} is for the same Service and takes precedence, "
            "because it is older or first by name. Delete one of the two."
        )
        yield place.error(Code.OVERRULED_UPSTREAM_POLICY, field, str(key), wanted)
        return
    if service.headless:
        wanted = (
            "The Service is headless: a caller chooses an endpoint by its address, so this "
            "policy applies only to calls that a TrafficSplit sends to the Service. Use a "
            "Service with a cluster IP."
        )
        yield place.warning(Code.CALLED_BY_ADDRESS, field, str(key), wanted)
    yield from _of_key(place, policy, service)
    yield from _of_check(place, policy, service)


def _of_key(place: Place, policy: UpstreamPolicy, service: Service) -> Iterator[Problem]:
    if policy.load.key is None:
        return
    silent = [
        str(port.port) for port in service.ports if not protocol_of(place.view, service.key, port).is_http
    ]
    if silent:
        wanted = (
            f"Sidecars do not see requests at port {', '.join(silent)}, because the port does not "
            "speak HTTP, so they choose any endpoint there. Set appProtocol: http in the "
            "Service if the port speaks HTTP."
        )
        yield place.warning(Code.HASHES_NOTHING, "spec.loadBalancing.hash", "", wanted)


def _of_check(place: Place, policy: UpstreamPolicy, service: Service) -> Iterator[Problem]:
    """Yield the problems of a health check by requests, which are subject to policy like other requests."""
    check = policy.checking
    if check is None or check.request is None or service.headless:
        return
    method, path = check.request
    spoken, section = health_check_protocol(check), "http" if check.grpc is None else "grpc"
    asked = [
        service_port
        for service_port in service.ports
        if protocol_of(place.view, service.key, service_port) is spoken
    ]
    if not asked:
        wanted = (
            f"The health check is not in force, because it is only for {_SPOKEN[spoken]} and "
            "the Service lacks a port of this protocol. Use tcp: {} instead."
        )
        yield place.warning(Code.ASKS_NO_REQUESTS, f"spec.healthCheck.{section}", "", wanted)
    denied = sorted({str(who) for port in asked for who in _denied(place.view, service.key, port, check)})
    if denied:
        names = ", ".join(denied[:_NAMED]) + (f" and {len(denied) - _NAMED} more" if denied[_NAMED:] else "")
        wanted = (
            f"Policy denies the health check {method} {path} to {names}, so every endpoint is "
            "unhealthy for them. Admit the request with a TrafficTarget, or use a tcp health "
            "check."
        )
        field = "spec.healthCheck.http.path" if check.grpc is None else "spec.healthCheck.grpc"
        yield place.warning(Code.HEALTH_NOT_ADMITTED, field, path, wanted)


def _denied(view: View, key: ServiceKey, port: ServicePort, check: HealthCheck) -> Iterator[ServiceIdentity]:
    """Yield the callers in the rules of a port for which this health check is denied."""
    method, path = check.request or ("", "")
    host = (("host", key.fqdn(view.settings.cluster_domain)),)
    for where in places(view, key, port):
        behind = where[0]
        rules = access(view, behind.identity, behind.port, health_check_protocol(check)).rules
        for who in admitted(OnlyRules(rules), ServiceIdentity):
            if admitting(view, Request(who, key, port.port, method, path, host), where) is None:
                yield who
