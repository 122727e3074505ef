"""Access rules as Envoy RBAC.

One policy per object (such as a TrafficTarget), so that overlapping objects unite.

Within one connection manager a request is allowed if any policy matches. Policies on single routes would not
work: Envoy takes the first matching route, and only its rule would decide.
"""

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Final

from catalog.policy.values.inbound import Access, AccessRule, EveryoneInTheMesh, admitted
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import TRAFFIC_TARGET
from meshwright.mesh.matching import RequestMatch
from meshwright.mesh.names import TrustDomain
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.callers import AuthenticatedName, Caller, EncryptedRange, IpRange
from meshwright.mesh.policies.smi import HTTPMatch
from meshwright.mesh.tap import TapChoice, Tapped
from meshwright.sidecars.envoy.common_messages import cidr
from meshwright.sidecars.envoy.rules.matching import full_match, header_matchers
from protos.envoy.config.rbac.v3 import rbac_pb2
from protos.envoy.type.matcher.v3 import path_pb2, string_pb2

HTTP_FILTER: Final = "envoy.filters.http.rbac"
"""Name of the enforcing HTTP filter, and of the metadata of all RBAC filters."""

LOOKING_FILTER: Final = "meshwright.looked_for"
"""Name of the preceding filter, which only records (`meshwright.sidecars.envoy.features.denials`)."""

ADMITTING: Final = "enforced_effective_policy_id"
VERDICT: Final = "enforced_engine_result"
LOOKED_FOR: Final = "shadow_effective_policy_id"
"""Keys of a filter's metadata (Envoy's documentation, "RBAC filter", "Dynamic Metadata")."""

TAP_PREFIX: Final = "tap_"
TAPPED: Final = f"{TAP_PREFIX}shadow_engine_result"
"""Metadata key of a tapped request, with the value `allowed`; the key itself never admits a request."""

REMEMBERED: Final = 4096
"""Number of cached callers and permissions: TrafficTargets share matches, and services share callers.

They are cached encoded, because a message takes ten times the memory and decoding is cheap.
"""

PERMISSIVE = "permissive"
"""Name of the policy in permissive mode. Names of objects contain a slash or a space, so they differ."""

NO_TARGET: Final = "~"
"""Recorded name for a caller without a TrafficTarget; the name sorts after all others."""


@cache
def deny_all() -> rbac_pb2.RBAC:
    """Return the RBAC rules that deny everything: action ALLOW without a policy."""
    return rbac_pb2.RBAC(action=rbac_pb2.RBAC.Action.ALLOW)


def rules(access: Access, trust_domain: TrustDomain) -> rbac_pb2.RBAC:
    """Return the rules of one port, which allow the union of all access rules (empty without a rule)."""
    policies = {name: policy for rule in access.rules for name, policy in _policies(rule, trust_domain)}
    if isinstance(access, EveryoneInTheMesh):
        # If callers from outside of the mesh pass the handshake too, TLS alone does not prove membership.
        outside = (*admitted(access, AuthenticatedName), *admitted(access, EncryptedRange))
        everyone = _of_the_mesh(trust_domain) if outside else anyone()
        policies[PERMISSIVE] = rbac_pb2.Policy(permissions=[_everything()], principals=[everyone])
    return rbac_pb2.RBAC(action=rbac_pb2.RBAC.Action.ALLOW, policies=policies)


def looked_for(access: Access, trust_domain: TrustDomain) -> rbac_pb2.RBAC | None:
    """Return recording rules for the reason of a denial; None if callers of the mesh are never denied.

    They have the TrafficTargets with matches, by name. Envoy records the first one with the caller as a
    source, else NO_TARGET. Callers outside of the mesh are not recorded.
    """
    if isinstance(access, EveryoneInTheMesh):
        return None
    result = {NO_TARGET: [_of_the_mesh(trust_domain)]}
    for rule in access.rules:
        callers = [caller for caller in rule.callers if isinstance(caller, ServiceIdentity)]
        if callers and rule.matches is not None:
            result[policy_name(rule.by)] = [_principal(caller, trust_domain) for caller in callers]
    policies = {
        name: rbac_pb2.Policy(permissions=[_everything()], principals=principals)
        for name, principals in result.items()
    }
    return rbac_pb2.RBAC(action=rbac_pb2.RBAC.Action.ALLOW, policies=policies)


def watched(choices: Tapped, trust_domain: TrustDomain) -> rbac_pb2.RBAC:
    """Return RBAC rules that record which requests are tapped; they are never enforced."""
    policies = {
        str(number): rbac_pb2.Policy(
            permissions=[_watched(choice)],
            principals=[_principal(caller, trust_domain) for caller in choice.callers]
            or [rbac_pb2.Principal(any=True)],
        )
        for number, choice in enumerate(choices)
    }
    return rbac_pb2.RBAC(action=rbac_pb2.RBAC.Action.ALLOW, policies=policies)


def _watched(choice: TapChoice) -> rbac_pb2.Permission:
    methods = header_matchers(RequestMatch(methods=choice.methods))
    parts = [rbac_pb2.Permission(header=method) for method in methods]
    if choice.path_prefix:
        prefix = string_pb2.StringMatcher(prefix=choice.path_prefix)
        parts.append(rbac_pb2.Permission(url_path=path_pb2.PathMatcher(path=prefix)))
    return _all_of(*parts) if parts else _everything()


def policy_name(by: ObjectKey) -> str:
    """Return the name of an object's policy: `<ns>/<name>` for a TrafficTarget, with the kind for others.

    For example, `shop/cart-to-db`, and `IngressBackend shop/cart`.
    """
    return by.path if by.kind == TRAFFIC_TARGET else str(by)


def only(caller: ServiceIdentity, trust_domain: TrustDomain) -> rbac_pb2.RBAC:
    """Return RBAC rules with all permissions for one caller, whichever access rules admit the caller."""
    policy = rbac_pb2.Policy(permissions=[_everything()], principals=[_principal(caller, trust_domain)])
    return rbac_pb2.RBAC(action=rbac_pb2.RBAC.Action.ALLOW, policies={str(caller): policy})


@cache
def anyone() -> rbac_pb2.Principal:
    """Return the principal of every TLS caller; the filter chain may require a certificate."""
    return rbac_pb2.Principal(authenticated=rbac_pb2.Principal.Authenticated())


def _policies(rule: AccessRule, trust_domain: TrustDomain) -> Iterator[tuple[str, rbac_pb2.Policy]]:
    """Yield a rule's policies by name: one, and one for each set of server names of its callers.

    In Envoy the server name is part of the permission.
    """
    by_names: dict[tuple[str, ...], list[Caller]] = {}
    for caller in rule.callers:
        by_names.setdefault(_server_names(caller), []).append(caller)
    requests = [_everything()] if rule.matches is None else [_permission(match) for match in rule.matches]
    for names, callers in by_names.items():
        asking = [rbac_pb2.Permission(requested_server_name=_server_name(item)) for item in names]
        permissions = [_all_of(request, _any_of(asking)) for request in requests] if asking else requests
        principals = list(_principals(callers, trust_domain))
        name = f"{policy_name(rule.by)} {','.join(names)}" if names else policy_name(rule.by)
        yield name, rbac_pb2.Policy(permissions=permissions, principals=principals)


def _principals(callers: list[Caller], trust_domain: TrustDomain) -> Iterator[rbac_pb2.Principal]:
    """Yield the principals of callers; names with the same networks are combined into one principal.

    Otherwise each name of an IngressBackend would repeat all its networks.
    """
    by_place: dict[tuple[IpRange, ...], list[AuthenticatedName]] = {}
    for caller in callers:
        if isinstance(caller, AuthenticatedName) and len(caller.networks) > 1:
            by_place.setdefault(caller.networks, []).append(caller)
    for caller in callers:
        named = by_place.get(caller.networks, ()) if isinstance(caller, AuthenticatedName) else ()
        if len(named) < 2:
            yield _principal(caller, trust_domain)
        elif named[0] is caller:
            names = [_named(string_pb2.StringMatcher(exact=one.name)) for one in named]
            near = rbac_pb2.Principal(or_ids=rbac_pb2.Principal.Set(ids=map(_near, caller.networks)))
            yield _both(rbac_pb2.Principal(or_ids=rbac_pb2.Principal.Set(ids=names)), near)


def _server_names(caller: Caller) -> tuple[str, ...]:
    return caller.server_names if isinstance(caller, EncryptedRange | AuthenticatedName) else ()


def _server_name(name: str) -> string_pb2.StringMatcher:
    if name.startswith("*."):
        return string_pb2.StringMatcher(suffix=name.removeprefix("*"))
    return string_pb2.StringMatcher(exact=name)


def _any_of(permissions: list[rbac_pb2.Permission]) -> rbac_pb2.Permission:
    return rbac_pb2.Permission(or_rules=rbac_pb2.Permission.Set(rules=permissions))


def _all_of(*permissions: rbac_pb2.Permission) -> rbac_pb2.Permission:
    return rbac_pb2.Permission(and_rules=rbac_pb2.Permission.Set(rules=permissions))


def _principal(caller: Caller, trust_domain: TrustDomain) -> rbac_pb2.Principal:
    # Bytes are cached instead of messages, because messages are mutable.
    return rbac_pb2.Principal.FromString(_encoded_principal(caller, trust_domain))


@lru_cache(REMEMBERED)
def _encoded_principal(caller: Caller, trust_domain: TrustDomain) -> bytes:
    return _principal_of(caller, trust_domain).SerializeToString(deterministic=True)


def _principal_of(caller: Caller, trust_domain: TrustDomain) -> rbac_pb2.Principal:
    match caller:
        case ServiceIdentity():
            return _named(string_pb2.StringMatcher(exact=caller.spiffe_id(trust_domain)))
        case AuthenticatedName(name, ()):
            return _named(string_pb2.StringMatcher(exact=name))
        case AuthenticatedName(name, networks):
            near = rbac_pb2.Principal(or_ids=rbac_pb2.Principal.Set(ids=map(_near, networks)))
            return _both(_named(string_pb2.StringMatcher(exact=name)), near)
        case EncryptedRange(network):
            # An identity of the mesh needs a rule of its own, even in an admitted network.
            stranger = rbac_pb2.Principal(not_id=_of_the_mesh(trust_domain))
            return rbac_pb2.Principal(
                and_ids=rbac_pb2.Principal.Set(ids=[_near(network), anyone(), stranger])
            )
        case IpRange():
            return _both(_near(caller), rbac_pb2.Principal(not_id=anyone()))


def _near(network: IpRange) -> rbac_pb2.Principal:
    # Not `remote_ip`, which comes from X-Forwarded-For: a client could claim any address.
    return rbac_pb2.Principal(direct_remote_ip=cidr(network))


def _both(one: rbac_pb2.Principal, other: rbac_pb2.Principal) -> rbac_pb2.Principal:
    return rbac_pb2.Principal(and_ids=rbac_pb2.Principal.Set(ids=[one, other]))


@cache
def _of_the_mesh(trust_domain: TrustDomain) -> rbac_pb2.Principal:
    return _named(string_pb2.StringMatcher(prefix=f"spiffe://{trust_domain}/"))


def _named(name: string_pb2.StringMatcher) -> rbac_pb2.Principal:
    return rbac_pb2.Principal(authenticated=rbac_pb2.Principal.Authenticated(principal_name=name))


@cache
def _everything() -> rbac_pb2.Permission:
    return rbac_pb2.Permission(any=True)


def _permission(match: HTTPMatch) -> rbac_pb2.Permission:
    return rbac_pb2.Permission.FromString(_encoded_permission(match))


@lru_cache(REMEMBERED)
def _encoded_permission(match: HTTPMatch) -> bytes:
    return _permission_of(match).SerializeToString(deterministic=True)


def _permission_of(match: HTTPMatch) -> rbac_pb2.Permission:
    parts = [
        rbac_pb2.Permission(header=header_matcher) for header_matcher in header_matchers(match.request_match)
    ]
    if match.path_regex is not None:
        # `url_path` is the path without query and fragment.
        path = path_pb2.PathMatcher(path=full_match(match.path_regex))
        parts.insert(0, rbac_pb2.Permission(url_path=path))
    if not parts:
        return _everything()
    return rbac_pb2.Permission(and_rules=rbac_pb2.Permission.Set(rules=parts))
