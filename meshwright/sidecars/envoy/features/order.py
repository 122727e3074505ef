"""The features of HTTP and their order; the order of filters is defined only here.

A request passes the filters of a connection manager in order, and a response in reverse (Envoy's
documentation, "HTTP filters", "Filter chain"). The order is:

1. `grpc_status`: the status of a gRPC call must be counted whichever filter ends it, on ports with gRPC.
2. `denials`: the reason for a denial must be recorded before any filter denies.
3. `access`: a denied request must cost nothing more, and later filters may rely on the rules.
4. `rates`: denied requests must not use up the rate, and requests above the rate must not reach services
behind.
5. `authorization`: only requests that policy admits are sent to the authorizer.
6. `cors`: only of callers' proxies; a preflight request of a browser is answered before a fault can end it.
7. `faults`: only outbound, after all other filters.
8. `router`: Envoy requires it to be the last.

Settings other than filters apply earlier: Envoy reads the headers, checks their size (`limits`), normalises
the path (`paths`), selects a route, and then runs the filters. At a gateway `edge_limits` adds the limits for
clients outside the mesh and the treatment of paths, `client_names` the names of validated clients, and
`edge_rates` the rates of clients, which are counted before preflight requests are answered. The results are
reported at the end (`request_log`, `spans`, `tap`).
"""

from typing import Final

from catalog.policy.values.edge import EdgeChain
from catalog.policy.values.inbound import InboundPort
from catalog.policy.values.outbound import OutboundService
from catalog.store.settings import DenialReasons
from meshwright.mesh.gateway.gateways import ValidationMode
from meshwright.mesh.names import TrustDomain
from meshwright.mesh.policies.resilience import RetryPolicy
from meshwright.mesh.service import EscapedSlashes, Protocol, ServiceKey
from meshwright.sidecars.envoy.features.access import Access
from meshwright.sidecars.envoy.features.authorization import Authorization
from meshwright.sidecars.envoy.features.client_names import ClientNames
from meshwright.sidecars.envoy.features.cors import Cors
from meshwright.sidecars.envoy.features.denials import Denials
from meshwright.sidecars.envoy.features.diagnosis import Diagnosis
from meshwright.sidecars.envoy.features.edge_limits import EdgeLimits
from meshwright.sidecars.envoy.features.edge_rates import EdgeRates
from meshwright.sidecars.envoy.features.faults import Faults
from meshwright.sidecars.envoy.features.feature import Feature
from meshwright.sidecars.envoy.features.grpc_status import GrpcStatus
from meshwright.sidecars.envoy.features.limits import Limits
from meshwright.sidecars.envoy.features.paths import Paths
from meshwright.sidecars.envoy.features.rates import Rates
from meshwright.sidecars.envoy.features.request_log import RequestLog
from meshwright.sidecars.envoy.features.retries import Retries
from meshwright.sidecars.envoy.features.router import Router
from meshwright.sidecars.envoy.features.spans import Spans
from meshwright.sidecars.envoy.features.tap import Tap
from meshwright.sidecars.envoy.features.undelivered_header import UndeliveredHeader
from meshwright.sidecars.envoy.features.upgrades import Upgrades
from meshwright.sidecars.layout import Side

_OF_ALL: Final = (Limits(), Upgrades(), Spans())
_UNDELIVERED: Final = UndeliveredHeader()
_ROUTER: Final = Router()
_CLIENT_NAMES: Final = ClientNames()
_ANSWERS_OF_CALLER: Final = Diagnosis(Side.CALLER)
_ANSWERS_OF_CALLED: Final = (Diagnosis(Side.CALLED),)


def inbound(
    trust_domain: TrustDomain, denials: DenialReasons, port: InboundPort, *, proven: bool = True
) -> tuple[Feature, ...]:
    """Return the features of an inbound port; `proven`: all callers are identities of the mesh.

    A sidecar's own answer gets one header, the first in this order: the reason for a denial, the mark of an
    undelivered request, or the diagnosis.
    """
    paths, log = Paths(port.escaped_slashes, guarded=True), RequestLog(inbound=True)
    looked_for = Denials(port.access, trust_domain, denials)
    rates = (Rates(port.rates),) if port.rates.looks_at_requests else ()
    asked = (Authorization(port.asked),) if port.asked is not None else ()
    access = Access(port.access, trust_domain, port.tapped)
    tap = Tap(port.protocol is Protocol.GRPC)
    counted = _counted(port.protocol)
    answers = (looked_for, _UNDELIVERED, *(_ANSWERS_OF_CALLED if proven else ()))
    return (*_OF_ALL, log, tap, paths, *counted, *answers, access, *rates, *asked, _ROUTER)


def outbound(service: OutboundService, retry: RetryPolicy | None = None) -> tuple[Feature, ...]:
    """Return the features of calls to a service, independent of the caller, so that callers share them."""
    browsers = (Cors(),) if service.cross_origin else ()
    faults = (Faults(),) if service.faulty else ()
    to_mesh = isinstance(service.upstream, ServiceKey)
    again = Retries(retry, to_mesh=to_mesh, farther=service.fails_over)
    counted, paths = _counted(service.protocol), Paths(service.escaped_slashes)
    log = RequestLog(inbound=False)
    return (*_OF_ALL, log, paths, *counted, again, _ANSWERS_OF_CALLER, *browsers, *faults, _ROUTER)


def outside() -> tuple[Feature, ...]:
    """Return the features of egress; escaped slashes are kept, because a host outside may use them."""
    paths = Paths(EscapedSlashes.KEEP)
    return (*_OF_ALL, RequestLog(inbound=False), paths, _ANSWERS_OF_CALLER, _ROUTER)


def edge(chain: EdgeChain, retry: RetryPolicy | None = None) -> tuple[Feature, ...]:
    """Return the features of a gateway's port, whose callers may be anybody.

    They get no diagnosis, which is for callers of the mesh. The names of clients that are not validated reach
    no backend, because any client could show a certificate with these names.
    """
    is_validated = chain.tls is not None and chain.tls.clients is ValidationMode.VALID_ONLY
    browsers = (Cors(),) if chain.cross_origin else ()
    again, limits = Retries(retry, to_mesh=True, farther=chain.fails_over), EdgeLimits(chain.settings)
    clients = (limits, _CLIENT_NAMES) if is_validated else (limits,)
    rates = (EdgeRates(chain.settings.rates),)
    log = RequestLog(inbound=False)
    return (*_OF_ALL, log, *clients, GrpcStatus(), again, *rates, *browsers, _ROUTER)


def _counted(protocol: Protocol) -> tuple[Feature, ...]:
    return (GrpcStatus(),) if protocol is Protocol.GRPC else ()
