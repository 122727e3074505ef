"""UpstreamPolicy, policy.meshwright.dev v1alpha1: load balancing and health of a service's endpoints."""

import re
from datetime import timedelta
from typing import Final

from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.policies.upstreams import (
    BalancingAlgorithm,
    HashKey,
    KeyKind,
    LoadBalancing,
    LocalityPreference,
    LocalityScope,
    OutlierDetectionOverride,
    UpstreamPolicy,
)
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields
from meshwright.specs.manifest import Manifest
from meshwright.specs.policy.health_check import health_check
from meshwright.specs.values.durations import bounded
from meshwright.specs.values.headers import is_name
from meshwright.specs.values.references import own_service

MOST_FAILURES: Final = 1000
EJECTED_RULE: Final = "must be a duration from 1s to 5m, for example 30s"
TTL_RULE: Final = "must be a duration from 0s to 365 days (8760h), for example 1h; 0s is a session cookie"
HEADER_RULE: Final = "must be the name of a header with at most 256 characters"
COOKIE_RULE: Final = "must be the name of a cookie with at most 256 characters"
QUERY_RULE: Final = (
    "must be the name of a query parameter, as written in the URL, with at most 256 characters"
)
PATH_RULE: Final = "must begin with /, and have at most 256 printable ASCII characters without ; and space"
HASH_RULE: Final = (
    f"must have exactly one of {', '.join(sorted(KeyKind))}, the part of a request that is the key"
)
NO_HASH: Final = (
    "the policy ConsistentHash needs the part of a request that is the key: header, cookie or query"
)
LONGEST_NAME: Final = 256
# Without & and =, at which a query is split into its parameters.
PARAMETER: Final = "[!-%'-<>-~]+"
# Without the semicolon, after which the next attribute of Set-Cookie begins.
COOKIE_PATH: Final = "/[!-:<-~]*"
_SHORTEST: Final = timedelta(seconds=1)
_LONGEST: Final = timedelta(minutes=5)
_YEAR: Final = timedelta(days=365)
_PARAMETER: Final = re.compile(PARAMETER)
_PATH: Final = re.compile(COOKIE_PATH)
NOT_HASHED: Final = f"has an effect only with policy: {BalancingAlgorithm.CONSISTENT_HASH}"


def upstream_policy(manifest: Manifest) -> UpstreamPolicy:
    """Read an UpstreamPolicy; the service is of its own namespace."""
    fields = manifest.spec()
    service = own_service(fields, "service", manifest.namespace)
    outliers, balancing = fields.section("outlierDetection"), fields.section("loadBalancing")
    ejecting = _ejecting(outliers)
    load = _load(balancing)
    checking = health_check(fields)
    locality = fields.section("locality")
    nearest = _nearest(locality) if fields.has("locality") else None
    has_settings = any(map(fields.has, ("outlierDetection", "loadBalancing", "healthCheck", "locality")))
    if not has_settings and not manifest.notes.refused:
        manifest.notes.warn(
            Code.EMPTY,
            fields.path,
            "lacks settings, so this UpstreamPolicy is not in force; add outlierDetection, "
            "loadBalancing, healthCheck or locality",
        )
    fields.close()
    return UpstreamPolicy(
        key=PolicyKey(manifest.namespace, manifest.key.name),
        service=service,
        ejecting=ejecting if fields.has("outlierDetection") else None,
        load=load,
        checking=checking,
        created=manifest.metadata.text("creationTimestamp") or "",
        nearest=nearest,
    )


def _nearest(fields: Fields) -> LocalityPreference:
    within = fields.choice("prefer", tuple(LocalityScope), LocalityScope.ZONE)
    preference = LocalityPreference(LocalityScope(within), fails_over=fields.flag("failover", default=True))
    fields.close()
    return preference


def _ejecting(fields: Fields) -> OutlierDetectionOverride:
    override = OutlierDetectionOverride(
        failures=fields.whole("consecutiveFailures", 0, MOST_FAILURES),
        server_errors=fields.whole("consecutiveServerErrors", 0, MOST_FAILURES),
        ejected_for=bounded(fields, "baseEjectionTime", _SHORTEST, _LONGEST, EJECTED_RULE),
        most_percent=fields.whole("maxEjectionPercent", 1, 100),
    )
    fields.close()
    return override


def _load(fields: Fields) -> LoadBalancing:
    policy = BalancingAlgorithm(
        fields.choice("policy", tuple(BalancingAlgorithm), BalancingAlgorithm.ROUND_ROBIN)
    )
    key = _key(fields.section("hash"), required=fields.has("hash"))
    fields.close()
    if policy is BalancingAlgorithm.CONSISTENT_HASH:
        if not fields.has("hash"):
            fields.wrong("hash", NO_HASH)
        return LoadBalancing(policy, key)
    if fields.has("hash"):
        fields.warn("hash", NOT_HASHED, Code.FIELDS_NOT_USED)
    return LoadBalancing(policy)


def _key(fields: Fields, *, required: bool) -> HashKey | None:
    header, query = fields.text("header"), fields.text("query")
    cookie = fields.section("cookie")
    hash_keys = [
        HashKey(KeyKind.HEADER, header.lower()) if header is not None else None,
        _cookie(cookie) if fields.has("cookie") else None,
        HashKey(KeyKind.QUERY, query) if query is not None else None,
    ]
    cookie.close()
    if header is not None and not (is_name(header) and len(header) <= LONGEST_NAME):
        fields.wrong("header", HEADER_RULE)
    if query is not None and not (_PARAMETER.fullmatch(query) and len(query) <= LONGEST_NAME):
        fields.wrong("query", QUERY_RULE)
    fields.close()
    keys = [hash_key for hash_key in hash_keys if hash_key is not None]
    if required and len(keys) != 1:
        fields.notes.refuse(Code.WRONG_VALUE, fields.path, HASH_RULE)
    return keys[0] if keys else None


def _cookie(fields: Fields) -> HashKey:
    name, path = fields.required_text("name", COOKIE_RULE), fields.text("path") or ""
    if name and not (is_name(name) and len(name) <= LONGEST_NAME):
        fields.wrong("name", COOKIE_RULE)
    if path and not (_PATH.fullmatch(path) and len(path) <= LONGEST_NAME):
        fields.wrong("path", PATH_RULE)
    return HashKey(KeyKind.COOKIE, name, bounded(fields, "ttl", timedelta(0), _YEAR, TTL_RULE), path)
