"""Calls that a group of proxies receives: ports, the rules that admit callers, and rate limits."""

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
    """What one object (TrafficTarget, IngressBackend, MutualTLS) admits on one port: callers, with requests.

    `matches` is None where every request, or every connection, is admitted; it is never empty. Of one port's
    rules no two are `by` one object.
    """

    by: ObjectKey
    callers: tuple[Caller, ...]
    matches: tuple[HTTPMatch, ...] | None = None

    @property
    def from_outside(self) -> bool:
        """Say whether it admits anybody who is not of the mesh."""
        return not all(isinstance(each, ServiceIdentity) for each in self.callers)


@dataclass(frozen=True, slots=True)
class EveryoneInTheMesh:
    """Permissive: any caller with a service certificate of the trust domain; and from outside, by `rules`."""

    # Rules are units of their own (`left_out`), by their own text.
    rules: tuple[AccessRule, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class OnlyRules:
    """What some rule admits, and nothing else; without rules nobody is admitted."""

    rules: tuple[AccessRule, ...] = ()


Access = EveryoneInTheMesh | OnlyRules


C = TypeVar("C", ServiceIdentity, IpRange, EncryptedRange, AuthenticatedName)


def admitted(access: Access, kind: type[C]) -> tuple[C, ...]:
    """Return the callers of one kind whom some rule admits to anything, sorted."""
    return tuple(sorted({each for rule in access.rules for each in rule.callers if isinstance(each, kind)}))


@dataclass(frozen=True, slots=True)
class PortAccess:
    """What a port admits, divided by how callers come to it: by `proven` in TLS, by `plain` in plain text."""

    proven: Access
    plain: OnlyRules


def divided(access: Access) -> PortAccess:
    """Divide what a port admits; a rule of both kinds of callers is in both parts, with its own of each."""
    plain = (_of_callers(each, plain=True) for each in access.rules)
    proven = (_of_callers(each, plain=False) for each in access.rules)
    return PortAccess(
        replace(access, rules=tuple(each for each in proven if each.callers)),
        OnlyRules(tuple(each for each in plain if each.callers)),
    )


def _of_callers(rule: AccessRule, *, plain: bool) -> AccessRule:
    found = tuple(each for each in rule.callers if isinstance(each, IpRange) is plain)
    return rule if len(found) == len(rule.callers) else replace(rule, callers=found)


@dataclass(frozen=True, slots=True)
class ExternalAuthorizer:
    """Who is asked about requests that policy admits: `by` an object, None: by all of the mesh."""

    authorizer: Authorizer
    by: PolicyKey | None = None


@dataclass(frozen=True, slots=True)
class NamedMatch:
    """A match by which TrafficTargets admit requests, and the HTTPRouteGroup that has it."""

    group: PolicyKey
    match: HTTPMatch


@dataclass(frozen=True, slots=True)
class InboundPort:
    """A port at which the workload is called, and who may.

    `listen` is where the proxy binds in explicit interception, None in transparent; `application` is where
    the application listens, `otherwise` where it may listen instead. `rates`: how much it takes of those who
    may call. `asked`: who may refuse what policy admits. `mesh_names` are those that callers of the mesh ask
    for in TLS, where some rule admits who shows no certificate; else there are none. `named`: the matches
    by which requests may be counted, sorted by group and name. `tapped`: which requests are told of, one by
    one.
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
