"""The features of HTTP, and in which order: where filters stand is said here and nowhere else.

A request goes through the filters of a connection manager in the order in which they are written, the answer
through those that can change it in reverse (Envoy's documentation, "HTTP filters", "Filter chain"). So:

1. how a call of gRPC ends (`grpc_status`), whoever ends it, where a port's protocol is said to be gRPC;
2. what a request lacks if it is denied (`denials`): whoever denies it answers at once, with that in hand;
3. who is admitted (`access`): a request that the mesh refuses costs nothing further, and whatever stands
   behind may rely on the rules having been obeyed;
4. how many are admitted in a time (`rates`): nobody uses up what is allowed to others by what is denied, and
   who is asked next is spared what is over it;
5. who is asked besides (`authorization`), for what policy admits;
6. faults on purpose (`faults`), on the way out alone: what is held back or answered has met all else;
7. `router`, which is terminal: Envoy demands that it is the last.

What is no filter decides before any of them: Envoy reads a request's headers, judges their size (`limits`),
and makes its path what it is to be (`paths`), then looks for a route, and begins with the filters. What each
has come to is told when all is over (`request_log`, `spans`, `tap`).
"""

from typing import Final

from catalog.policy.values.inbound import InboundPort
from catalog.policy.values.outbound import OutboundService
from catalog.store.settings import DenialReasons
from meshwright.mesh.names import TrustDomain
from meshwright.mesh.policies.resilience import RetryPolicy
from meshwright.mesh.service import EscapedSlashes, Protocol, ServiceKey
from meshwright.sidecars.envoy.features.access import Access
from meshwright.sidecars.envoy.features.authorization import Authorization
from meshwright.sidecars.envoy.features.denials import Denials
from meshwright.sidecars.envoy.features.diagnosis import Diagnosis
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
_ANSWERS_OF_CALLER: Final = Diagnosis(Side.CALLER)
_ANSWERS_OF_CALLED: Final = (Diagnosis(Side.CALLED),)


def inbound(
    trust_domain: TrustDomain, denials: DenialReasons, port: InboundPort, *, proven: bool = True
) -> tuple[Feature, ...]:
    """Return the features of an inbound port; `proven`: its callers are identities of the mesh.

    An own answer gets one header, the first that fits: the reason of a denial, that nothing was delivered,
    whose answer it is.
    """
    paths, log = Paths(port.escaped_slashes, guarded=True), RequestLog(inbound=True)
    looked_for = Denials(port.access, trust_domain, denials)
    rates = (Rates(port.rates),) if port.rates.looks_at_requests else ()
    asked = (Authorization(port.asked),) if port.asked is not None else ()
    access = Access(port.access, trust_domain, port.tapped)
    told = Tap(port.protocol is Protocol.GRPC)
    counted = _counted(port.protocol)
    answers = (looked_for, _UNDELIVERED, *(_ANSWERS_OF_CALLED if proven else ()))
    return (*_OF_ALL, log, told, paths, *counted, *answers, access, *rates, *asked, _ROUTER)


def outbound(service: OutboundService, retry: RetryPolicy | None = None) -> tuple[Feature, ...]:
    """Return the features of calls to a service: those of the service alone, so that callers share them."""
    faults = (Faults(),) if any(each.actions.faulty for each in service.rules) else ()
    to_mesh = isinstance(service.upstream, ServiceKey)
    again = Retries(retry, to_mesh=to_mesh, farther=service.fails_over)
    counted, paths = _counted(service.protocol), Paths(service.escaped_slashes)
    log = RequestLog(inbound=False)
    return (*_OF_ALL, log, paths, *counted, again, _ANSWERS_OF_CALLER, *faults, _ROUTER)


def outside() -> tuple[Feature, ...]:
    """Return the features of calls that leave the mesh: an application outside may mean escaped slashes."""
    paths = Paths(EscapedSlashes.KEEP)
    return (*_OF_ALL, RequestLog(inbound=False), paths, _ANSWERS_OF_CALLER, _ROUTER)


def _counted(protocol: Protocol) -> tuple[Feature, ...]:
    return (GrpcStatus(),) if protocol is Protocol.GRPC else ()
