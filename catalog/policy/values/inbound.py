"""Received calls of a group of proxies: ports, rules that admit callers, and rate limits."""

from dataclasses import dataclass, field, replace
from typing import TypeVar

from catalog.policy.values.interception import SocketAddress
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.authorization import Authorizer
from meshwright.mesh.policies.callers import AuthenticatedName, Caller, EncryptedRange, IpRange
from meshwright.mesh.policies.limits import RateLimits
from meshwright.mesh.policies.smi import HTTPMatch, PolicyKey
from meshwright.mesh.service import EscapedSlashes, Protocol, ServiceKey
from meshwright.mesh.tap import Tapped


@dataclass(frozen=True, slots=True)
class AccessRule:
    """Access by one object (TrafficTarget, IngressBackend, MutualTLS) on one port: callers, with requests.

    `matches` is `None` if every request or connection is admitted, and never empty. Each rule of a port is
    `by` another object.
    """

    by: ObjectKey
    callers: tuple[Caller, ...]
    matches: tuple[HTTPMatch, ...] | None = None

    @property
    def from_outside(self) -> bool:
        """True if the rule admits callers from outside the mesh."""
        return not all(isinstance(caller, ServiceIdentity) for caller in self.callers)


@dataclass(frozen=True, slots=True)
class EveryoneInTheMesh:
    """Permissive access for every caller with a certificate of the trust domain.

    `rules` for those outside.
    """

    # Without repr, because rules are units of their own, and the id of a unit is made from its repr.
    rules: tuple[AccessRule, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class OnlyRules:
    """Access by the rules of policy objects only; without rules no caller is admitted."""

    rules: tuple[AccessRule, ...] = ()


Access = EveryoneInTheMesh | OnlyRules


C = TypeVar("C", ServiceIdentity, IpRange, EncryptedRange, AuthenticatedName)


def admitted(access: Access, kind: type[C]) -> tuple[C, ...]:
    """Return the callers of one kind (class) that any rule of an access admits, sorted."""
    return tuple(
        sorted({caller for rule in access.rules for caller in rule.callers if isinstance(caller, kind)})
    )


@dataclass(frozen=True, slots=True)
class PortAccess:
    """Access at a port, divided into callers with TLS (`proven`) and in plain text (`plain`)."""

    proven: Access
    plain: OnlyRules


def divided(access: Access) -> PortAccess:
    """Divide the access at a port; a rule with both kinds of callers is in both parts."""
    plain = (_of_callers(rule, plain=True) for rule in access.rules)
    proven = (_of_callers(rule, plain=False) for rule in access.rules)
    return PortAccess(
        replace(access, rules=tuple(access_rule for access_rule in proven if access_rule.callers)),
        OnlyRules(tuple(access_rule for access_rule in plain if access_rule.callers)),
    )


def _of_callers(rule: AccessRule, *, plain: bool) -> AccessRule:
    result = tuple(caller for caller in rule.callers if isinstance(caller, IpRange) is plain)
    return rule if len(result) == len(rule.callers) else replace(rule, callers=result)


@dataclass(frozen=True, slots=True)
class ExternalAuthorizer:
    """External authorizer of admitted requests; `by` is an object, or `None` for the whole mesh."""

    authorizer: Authorizer
    by: PolicyKey | None = None


@dataclass(frozen=True, slots=True)
class NamedMatch:
    """An HTTP match by which TrafficTargets admit requests, with its HTTPRouteGroup."""

    group: PolicyKey
    match: HTTPMatch


@dataclass(frozen=True, slots=True)
class InboundPort:
    """A port of the workload with its admitted callers.

    - `listen` is the proxy's address in explicit interception, `None` in transparent.
    - `application` is the application's address, and `otherwise` an alternative one.
    - `rates` limits admitted callers, and `asked` may refuse admitted requests.
    - `mesh_names` are the TLS server names of callers of the mesh; only set if a rule admits callers without
      certificate.
    - `named` are matches for counting requests, sorted by group and name.
    - `tapped` selects requests reported one by one.
    """

    port: Port
    protocol: Protocol
    services: tuple[ServiceKey, ...]
    application: SocketAddress
    access: Access
    listen: SocketAddress | None = None
    escaped_slashes: EscapedSlashes = EscapedSlashes.REJECT
    rates: RateLimits = field(default_factory=RateLimits)
    mesh_names: tuple[str, ...] = ()
    otherwise: SocketAddress | None = None
    asked: ExternalAuthorizer | None = None
    named: tuple[NamedMatch, ...] = ()
    tapped: Tapped = ()
