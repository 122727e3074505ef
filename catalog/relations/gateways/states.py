"""State of a gateway for the status: acceptance, listeners with attached routes, and the serving workloads.

Reasons are those of a Gateway's condition `Accepted`.

For example, a gateway with a good listener and one of protocol UDP is accepted, with the reason
ListenersNotValid. A gateway has the addresses of the Services in front of the serving workloads, and
without a Service the addresses of the workloads.
"""

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address

from catalog.relations.backends.workloads import services_of
from catalog.relations.gateways.classes import served_gateway
from catalog.relations.gateways.client_certificates import client_certificate
from catalog.relations.gateways.listeners import listener_verdicts, listeners_of_set
from catalog.relations.gateways.route_listeners import routes_at_listener
from catalog.relations.gateways.verdicts import BrokenCertificate, ListenerVerdict
from catalog.store.gateway import workloads_by_gateway
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.gateway.gateways import HOSTNAME_ADDRESS, IP_ADDRESS, Gateway, GatewayAddress
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.kinds import CONFIG_MAP
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import Service
from meshwright.mesh.workload import Workload


class GatewayReason(enum.StrEnum):
    """Reasons of a gateway's condition `Accepted`; with LISTENERS_NOT_VALID it is True or False."""

    ACCEPTED = "Accepted"
    LISTENERS_NOT_VALID = "ListenersNotValid"
    UNSUPPORTED_ADDRESS = "UnsupportedAddress"
    INVALID_PARAMETERS = "InvalidParameters"


@dataclass(frozen=True, slots=True)
class ListenerState:
    """A listener with a verdict, and the number of routes attached to it."""

    verdict: ListenerVerdict
    attached: int


@dataclass(frozen=True, slots=True)
class GatewayState:
    """State of a gateway of Meshwright.

    `addresses` are all of the gateway, or the requested ones among these. `unusable` are requested addresses
    without a place. `proxies` are the sorted names of the serving workloads' proxies. `listeners` are the
    gateway's own, and `sets` is the number of its accepted ListenerSets. `broken` is the reference to a
    client certificate out of force. With `insecure` some listeners may admit clients without a valid
    certificate although clients are validated.
    """

    gateway: PolicyKey
    accepted: bool
    reason: GatewayReason
    message: str
    listeners: tuple[ListenerState, ...]
    addresses: tuple[GatewayAddress, ...] = ()
    unusable: tuple[str, ...] = ()
    proxies: tuple[ProxyName, ...] = ()
    sets: int = 0
    broken: BrokenCertificate | None = None
    insecure: bool = False


@derived
def gateway_state(view: View, key: PolicyKey) -> GatewayState | None:
    """Return the state of a gateway; None for a missing or foreign one."""
    gateway = served_gateway(view, key)
    if gateway is None:
        return None
    listeners = tuple(
        ListenerState(verdict, len(routes_at_listener(view, key, verdict.listener.name)))
        for verdict in listeners_of_set(view, key, None)
    )
    accepted, reason, message = _acceptance(gateway, listeners)
    # A set with several listeners counts once; the gateway's own listeners have no set.
    serving_sets = {item.listener_set for item in listener_verdicts(view, key) if item.in_force} - {None}
    serving = _serving(view, key)
    present = addresses_of(view, key)
    # A dictionary keeps the order of the requested addresses.
    wanted = dict.fromkeys(item for item in gateway.addresses if item.value)
    shown = client_certificate(view, key)
    return GatewayState(
        key,
        accepted,
        reason,
        message,
        listeners,
        tuple(address for address in present if not wanted or address in wanted),
        tuple(address.value for address in wanted if address not in present),
        tuple(sorted(workload.proxy_name for workload in serving if workload.proxy_name is not None)),
        len(serving_sets) if accepted else 0,
        shown if isinstance(shown, BrokenCertificate) else None,
        gateway.tls.frontend.is_insecure,
    )


def addresses_of(view: View, key: PolicyKey) -> tuple[GatewayAddress, ...]:
    """Return the addresses at which a gateway can be served, in the order of the serving workloads."""
    return tuple(dict.fromkeys(_addresses(view, _serving(view, key))))


def _serving(view: View, key: PolicyKey) -> list[Workload]:
    return [view.workloads[item] for item in sorted(workloads_by_gateway(view).get(key, ()))]


def _addresses(view: View, serving: Iterable[Workload]) -> Iterator[GatewayAddress]:
    """Yield the addresses of a gateway: of load balancers, else of their Services, else of the workloads."""
    for workload in serving:
        services = [view.services[key] for key in services_of(view, workload.key) if key in view.services]
        named = [text for service in services for text in _of_service(service)]
        for text in named or workload.addresses:
            yield GatewayAddress(IP_ADDRESS if _is_address(text) else HOSTNAME_ADDRESS, text)


def _of_service(service: Service) -> tuple[str, ...]:
    """Return the addresses and host names at which a Service is called from outside, or else the own ones."""
    own = () if service.cluster_ip is None else (service.cluster_ip, *service.other_addresses)
    return service.ingress or own


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _acceptance(gateway: Gateway, listeners: tuple[ListenerState, ...]) -> tuple[bool, GatewayReason, str]:
    """Return status, reason and message of the condition `Accepted`."""
    unknown = sorted({item.type for item in gateway.addresses if item.type != IP_ADDRESS})
    if unknown:
        message = f"addresses of type {', '.join(unknown)} are not supported; the type must be {IP_ADDRESS}"
        return False, GatewayReason.UNSUPPORTED_ADDRESS, message
    parameters = gateway.infrastructure.parameters
    if parameters is not None and parameters.kind != CONFIG_MAP:
        message = f"spec.infrastructure.parametersRef is a {parameters.kind.full}: must be a ConfigMap"
        return False, GatewayReason.INVALID_PARAMETERS, message
    # The listeners decide only if the gateway itself is in order.
    bad = [item.verdict for item in listeners if not item.verdict.accepted]
    if not bad:
        return True, GatewayReason.ACCEPTED, "all listeners are in force"
    message = "listeners out of force: " + "; ".join(
        f"{verdict.listener.name} ({verdict.message})" for verdict in bad
    )
    return len(bad) < len(listeners), GatewayReason.LISTENERS_NOT_VALID, message
