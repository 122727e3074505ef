"""Problems of UpstreamTrafficSettings: unknown hosts, precedence, and limits without effect."""

from collections.abc import Iterator

from catalog.lint.codes import Code
from catalog.lint.servers import behind_sidecars
from catalog.lint.wording import Place, meant
from catalog.policy.objects import limits
from catalog.relations.backends.protocols import protocol_of
from catalog.relations.backends.targets import served_by
from catalog.relations.backends.workloads import backing
from catalog.store.osm import egresses_by_limits
from catalog.store.view import View
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.kinds import UPSTREAM_TRAFFIC_SETTING
from meshwright.mesh.names import Namespace, ServiceName
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.limits import ConnectionLimits, RateLimits, UpstreamTrafficSetting
from meshwright.mesh.problems.problem import Problem
from meshwright.mesh.service import Service, ServiceKey


def problems(view: View, setting: UpstreamTrafficSetting) -> Iterator[Problem]:
    """Yield the problems of an UpstreamTrafficSetting."""
    place = Place(view, ObjectKey.from_name(UPSTREAM_TRAFFIC_SETTING, setting.key))
    if setting.connections == ConnectionLimits() and setting.rates == RateLimits():
        yield place.warning(
            Code.NO_LIMITS,
            "spec",
            "",
            (
                "The object lacks limits that Meshwright supports, so it is not in force. Add a limit, or "
                "delete the object."
            ),
        )
    service = called(view, setting.host)
    if service is None:
        if not egresses_by_limits(view).lookup(setting.key):
            yield from _unknown(place, setting)
    elif service.key.namespace != setting.key.namespace:
        wanted = (
            f"The host is a Service of namespace {service.key.namespace}, so this "
            "UpstreamTrafficSetting is not in force. Move it to namespace "
            f"{service.key.namespace}."
        )
        yield place.error(Code.FOREIGN_HOST, "metadata.namespace", setting.key.namespace, wanted)
    elif (first := limits.setting_of(view, service.key)) is not None and first.key != setting.key:
        wanted = (
            f"UpstreamTrafficSetting {first.key} is for the same host and takes precedence, "
            "because it is older or first by name. Delete one of the two."
        )
        yield place.error(Code.OVERRULED_SETTING, "spec.host", setting.host, wanted)
    else:
        yield from _of_rates(place, setting, service)
        yield from behind_sidecars(view, place.key, _counting(setting.rates))


def _counting(rates: RateLimits) -> Iterator[tuple[str, HostPort]]:
    for protocol, result in (("tcp", rates.counted_connections), ("http", rates.counted_requests)):
        if result is not None:
            yield f"spec.rateLimit.global.{protocol}.rateLimitService.host", result.asked.server


def called(view: View, host: str) -> Service | None:
    """Return the Service with a host name, for example `cart.shop.svc`, or None if missing."""
    labels = host.split(".")
    key = ServiceKey(Namespace(labels[1]), ServiceName(labels[0])) if len(labels) > 1 else None
    if key is None or host not in key.host_names(view.settings.cluster_domain):
        return None
    return view.services.get(key)


def _unknown(place: Place, setting: UpstreamTrafficSetting) -> Iterator[Problem]:
    view, own = place.view, setting.key.namespace
    domain = view.settings.cluster_domain
    there = [key.fqdn(domain) for key in view.services if key.namespace == own]
    wanted = (
        f"A Service with this host name does not exist{meant([setting.host], there)}. The object is not in "
        "force until a Service has the name, or until an Egress of the namespace lists the object in its "
        "matches."
    )
    yield place.warning(Code.UNKNOWN_HOST, "spec.host", setting.host, wanted)


def _of_rates(place: Place, setting: UpstreamTrafficSetting, service: Service) -> Iterator[Problem]:
    view = place.view
    speaks_http = any(protocol_of(view, service.key, port).is_http for port in service.ports)
    if setting.rates.looks_at_requests and not speaks_http:
        wanted = (
            f"Service {service.key} lacks a port with HTTP, and sidecars count requests only on HTTP ports, "
            "so this limit is not in force. Set appProtocol: http in the Service if a port speaks HTTP."
        )
        yield place.warning(Code.RATE_OF_NO_REQUESTS, _of_requests(setting.rates), "", wanted)
    if setting.rates == RateLimits():
        return
    for other in _beside(view, service):
        first = limits.counting(view, tuple(sorted((service.key, other))))
        if first is not None and first.key != setting.key:
            wanted = (
                f"Service {other} uses the same port of a workload, and UpstreamTrafficSetting "
                f"{first.key} for that Service takes precedence there, because it is older or "
                "first by name. Set the same rates in both objects, or give the Services different "
                "target ports."
            )
            yield place.warning(Code.RATES_DIFFER, "spec.host", setting.host, wanted)


def _of_requests(rates: RateLimits) -> str:
    """Return the first field with a limit of requests, for example `spec.rateLimit.local.http`."""
    if rates.requests is not None:
        return "spec.rateLimit.local.http"
    return "spec.httpRoutes" if rates.routes else "spec.rateLimit.global.http"


def _beside(view: View, service: Service) -> tuple[ServiceKey, ...]:
    """Return the other Services that share a target port of a workload with this one; sorted."""
    service_keys: set[ServiceKey] = set()
    for workload in backing(view, service.key):
        for _, _, there in served_by(view, workload):
            keys = {item.key for item in there}
            if service.key in keys:
                service_keys |= keys
    return tuple(sorted(service_keys - {service.key}))
