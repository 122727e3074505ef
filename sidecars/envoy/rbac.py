"""Access rules as Envoy RBAC: one policy per TrafficTarget, so that overlapping targets unite.

Within one connection manager a request is allowed if any policy fits. Policies that hung on single routes
would not do: Envoy takes the first route that matches, and its rule alone would decide.
"""

from catalog.policy.proxy import Access, AccessRule, EveryoneInTheMesh, OnlyRules
from mesh.identity import ServiceIdentity
from mesh.names import TrustDomain
from mesh.policy import HTTPMatch
from protos.envoy.config.rbac.v3 import rbac_pb2
from protos.envoy.type.matcher.v3 import path_pb2, string_pb2
from sidecars.envoy.matching import full_match, header_matchers

PERMISSIVE = "permissive"
"""The policy name in permissive mode; no TrafficTarget has it, for theirs hold a slash."""


def deny_all() -> rbac_pb2.RBAC:
    """Return rules that allow nothing: action ALLOW without a policy."""
    return rbac_pb2.RBAC(action=rbac_pb2.RBAC.Action.ALLOW)


def rules(access: Access, trust_domain: TrustDomain) -> rbac_pb2.RBAC:
    """Return the rules of one port. They allow what some rule admits; without rules, nothing."""
    match access:
        case EveryoneInTheMesh():
            everything = rbac_pb2.Permission(any=True)
            policies = {PERMISSIVE: rbac_pb2.Policy(permissions=[everything], principals=[anyone()])}
        case OnlyRules(admitted):
            policies = {str(rule.target): _policy(rule, trust_domain) for rule in admitted}
    return rbac_pb2.RBAC(action=rbac_pb2.RBAC.Action.ALLOW, policies=policies)


def only(caller: ServiceIdentity, trust_domain: TrustDomain) -> rbac_pb2.RBAC:
    """Return rules that allow one caller everything; whichever rules admit it, they are the same."""
    policy = rbac_pb2.Policy(
        permissions=[rbac_pb2.Permission(any=True)], principals=[_principal(caller, trust_domain)]
    )
    return rbac_pb2.RBAC(action=rbac_pb2.RBAC.Action.ALLOW, policies={str(caller): policy})


def anyone() -> rbac_pb2.Principal:
    """Return everybody who has shown a certificate."""
    return rbac_pb2.Principal(authenticated=rbac_pb2.Principal.Authenticated())


def _policy(rule: AccessRule, trust_domain: TrustDomain) -> rbac_pb2.Policy:
    permissions = (
        [rbac_pb2.Permission(any=True)]
        if rule.matches is None
        else [_permission(match) for match in rule.matches]
    )
    principals = [_principal(each, trust_domain) for each in rule.principals]
    return rbac_pb2.Policy(permissions=permissions, principals=principals)


def _principal(identity: ServiceIdentity, trust_domain: TrustDomain) -> rbac_pb2.Principal:
    name = string_pb2.StringMatcher(exact=identity.spiffe_id(trust_domain))
    return rbac_pb2.Principal(authenticated=rbac_pb2.Principal.Authenticated(principal_name=name))


def _permission(match: HTTPMatch) -> rbac_pb2.Permission:
    parts = [rbac_pb2.Permission(header=each) for each in header_matchers(match)]
    if match.path_regex is not None:
        # `url_path` is the path without query and fragment.
        path = path_pb2.PathMatcher(path=full_match(match.path_regex))
        parts.insert(0, rbac_pb2.Permission(url_path=path))
    if not parts:
        return rbac_pb2.Permission(any=True)
    return rbac_pb2.Permission(and_rules=rbac_pb2.Permission.Set(rules=parts))
