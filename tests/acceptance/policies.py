"""Random policies beside SMI's: those of Open Service Mesh and our own, for one mesh.

About one value in each policy is odd, because one wrong value invalidates the object.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from tests.acceptance.values import Dice

if TYPE_CHECKING:
    from tests.acceptance.manifests import Pool

Document = dict[str, Any]

DURATIONS: Final = ("1ms", "250ms", "1s", "1.0001s", "5m", "1h", "0.5ms", "2h", "-1s", "0s", "1")
PERCENTS: Final = (0, 100, 50, 12.5, 0.0001, 99.9999, 1e-5, 101, -1, float("nan"), float("inf"), "5", True)
STATUSES: Final = (200, 201, 404, 418, 429, 499, 503, 511, 599, 600, 199, 0, "503")
VALUES: Final = (
    "a",
    " a ",
    "%",
    "%%",
    "%REQ(x)%",
    "%START_TIME%",
    "a" * 4096,
    "a" * 4097,
    "\t",
    "é",
    "a\nb",
    "",
)
COUNTS: Final = (0, 1, 3, 1000, 2**32 - 1, 2**32, -1, 1.5)
NAMES: Final = ("session", "a.b", "a;b", "", "x" * 256, "x" * 257, "a b", "é", "$")
PATHS: Final = ("/", "/health?a=b", "/%41", "/a b", "//", "/é", "", "a", "/" + "a" * 300, "/#x")
RETRY_ON: Final = ("5xx", "reset,connect-failure", "gateway-error", "unavailable", "never", "5xx,,reset", "")
WORDS: Final = ("a", "x-tenant", "[a-z]+", "é", "%x%", "%REQ(x)%", "a b", "a" * 256, "%", "{", "(")
PLAIN: Final = ("/", "/a.b", "/books(/[0-9]+)?", ".*", "/[a-z]+", "(?i)/x", "/(", "/\\d{9999}")
NETWORKS: Final = (
    "10.0.0.0/8",
    "0.0.0.0/0",
    "::/0",
    "fd00::/8",
    "10.0.0.1/32",
    "::ffff:10.0.0.0/104",
    "10.0.0.1",
    "x",
)
HOSTS: Final = (
    "example.com",
    "*.example.com",
    "EXAMPLE.com.",
    "10.0.0.9",
    "*",
    "a..b",
    "x_y.z",
    "é.com",
    "[::1]",
)


def policy(dice: Dice, pool: "Pool") -> Document:
    """Make a policy of any kind."""
    kind = dice.choice(sorted(KINDS))
    group, make = KINDS[kind]
    metadata = {"name": dice.name(), "namespace": pool.home}
    return {"apiVersion": f"{group}/v1alpha1", "kind": kind, "metadata": metadata, "spec": make(dice, pool)}


def _routes(dice: Dice, pool: "Pool") -> Document:
    return {
        "service": dice.choice(pool.services),
        "rules": [_rule(dice, pool) for _ in range(dice.randint(1, 3))],
    }


def _rule(dice: Dice, pool: "Pool") -> Document:
    parts: dict[str, Callable[[], Any]] = {
        "matches": lambda: [_group(dice, pool) for _ in range(dice.randint(1, 2))],
        "timeout": lambda: {"request": _of(dice, DURATIONS, 7)},
        "headers": lambda: {item: _changes(dice) for item in dice.few(("request", "response"), 2)},
        "fault": lambda: {
            "delay": {"percent": _percent(dice), "duration": dice.choice(DURATIONS[:6])},
            "abort": {"percent": _percent(dice), "status": _of(dice, STATUSES, 9)},
        },
        "mirror": lambda: {"service": dice.choice((*pool.services, "gone")), "percent": _percent(dice)},
    }
    return {item: parts[item]() for item in dice.few(tuple(parts), 4)}


def _group(dice: Dice, pool: "Pool") -> Document:
    result: Document = {"kind": "HTTPRouteGroup", "name": dice.choice((*pool.groups, "gone"))}
    return result | ({"matches": dice.few(pool.matches, 2)} if dice.odds(3) else {})


def _changes(dice: Dice) -> Document:
    return {
        "set": [_header(dice) for _ in range(dice.randint(0, 2))],
        "add": [_header(dice) for _ in range(dice.randint(0, 2))],
        "remove": [_header_name(dice) for _ in range(dice.randint(0, 1))],
    }


def _header(dice: Dice) -> Document:
    return {"name": _header_name(dice), "value": _of(dice, VALUES, 7)}


def _of(dice: Dice, values: Sequence[Any], good: int) -> Any:
    """Return one of the first `good` values, which are valid, or rarely one of the others."""
    return dice.choice(values[good:] if dice.odds(20) else values[:good])


def _header_name(dice: Dice) -> str:
    """Return a header name, rarely one that may not be changed."""
    return dice.header_name() if dice.odds(10) else f"x-{dice.label()[:20]}"


def _percent(dice: Dice) -> Any:
    return _of(dice, PERCENTS, 6)


def _upstreams(dice: Dice, pool: "Pool") -> Document:
    keys = (
        {"header": dice.header_name()},
        {"query": _of(dice, NAMES, 2)},
        {"cookie": {"name": dice.choice(NAMES[:2]), "ttl": dice.choice(("0s", "1h", "8760h")), "path": "/"}},
        {"cookie": {"name": _of(dice, NAMES, 2), "path": _of(dice, PATHS, 3)}},
    )
    checked = {"interval": dice.choice(DURATIONS[2:6]), "unhealthyThreshold": dice.choice((1, 3, 10))}
    parts: Document = {
        "outlierDetection": {
            "consecutiveFailures": _of(dice, COUNTS, 4),
            "consecutiveServerErrors": dice.choice(COUNTS[:4]),
            "baseEjectionTime": _of(dice, ("1s", "5m", "30s", "301s"), 3),
            "maxEjectionPercent": _of(dice, (1, 50, 100, 0, 101), 3),
        },
        "loadBalancing": dice.choice(
            (
                {"policy": "ConsistentHash", "hash": dice.choice(keys)},
                {"policy": "LeastRequest"},
                {"policy": "Random"},
            )
        ),
        "healthCheck": checked | dice.choice(({"tcp": {}}, {"http": {"path": _of(dice, PATHS, 3)}})),
    }
    return {"service": dice.choice(pool.services)} | {item: parts[item] for item in dice.few(tuple(parts), 3)}


def _limits(dice: Dice, pool: "Pool") -> Document:
    http = {
        name: _of(dice, COUNTS, 5)
        for name in dice.few(
            ("maxRequests", "maxPendingRequests", "maxRetries", "maxRequestsPerConnection"), 4
        )
    }
    rate: Document = {
        "requests": dice.choice((1, 100, 2**31)),
        "unit": _of(dice, ("second", "minute", "hour", "day"), 3),
        "burst": _of(dice, (0, 1, 2**31), 2),
        "responseStatusCode": _of(dice, (429, 503, 418, 431, 511, 499, 200, 600), 5),
        "responseHeadersToAdd": [_header(dice) for _ in range(dice.randint(0, 2))],
    }
    tcp = {"connections": dice.choice((1, 2**32 - 1)), "unit": "second"}
    routes = [
        {
            "path": f"{_of(dice, PLAIN, 6)}{number}",
            "rateLimit": {"local": rate, "global": {"descriptors": _descriptors(dice)}},
        }
        for number in range(dice.randint(0, 2))
    ]
    asked: Document = {
        "rateLimitService": {"host": _of(dice, ("limiter", "10.0.0.9", "fd00::9", "a b"), 3), "port": 8081},
        "domain": _of(dice, WORDS, 9),
        "timeout": dice.choice(DURATIONS[:6]),
        "failOpen": dice.choice((True, False)),
    }
    counted: Document = {
        "tcp": {**asked, "descriptors": [{"entries": [{"key": _of(dice, WORDS, 9), "value": "a"}]}]},
        "http": {
            **asked,
            "descriptors": _descriptors(dice),
            "responseStatusCode": _of(dice, (429, 503, 499), 2),
            "enableXRateLimitHeaders": dice.choice((True, False)),
        },
    }
    return {
        "host": f"{dice.choice(pool.services)}.{pool.home}.svc.cluster.local",
        "connectionSettings": {"tcp": {"maxConnections": dice.choice(COUNTS[:5])}, "http": http},
        "rateLimit": {
            "local": dice.choice(({"http": rate}, {"tcp": tcp}, {"http": rate, "tcp": tcp})),
            "global": dice.choice(({}, counted)),
        },
        "httpRoutes": routes,
    }


def _descriptors(dice: Dice) -> list[Document]:
    return [{"entries": [_entry(dice) for _ in range(dice.randint(1, 2))]} for _ in range(dice.randint(1, 2))]


def _entry(dice: Dice) -> Document:
    header = {
        "name": _of(dice, ("x-tenant", "Host", ":method", ":path", ":scheme", "a b"), 4),
        dice.choice(("exact", "prefix", "suffix", "contains", "regex")): _of(dice, WORDS, 9),
    }
    present = {"name": "x-form", "present": dice.choice((True, False))}
    match = {
        "value": _of(dice, WORDS, 9),
        "expectMatch": dice.choice((True, False)),
        "headers": [header, present],
    }
    return dice.choice(
        (
            {"genericKey": {"value": _of(dice, WORDS, 9)}},
            {"remoteAddress": {}},
            {"requestHeader": {"name": header["name"], "key": _of(dice, WORDS, 9)}},
            {"headerValueMatch": match},
        )
    )


def _retry(dice: Dice, pool: "Pool") -> Document:
    answer = {
        "retryOn": _of(dice, RETRY_ON, 4),
        "numRetries": _of(dice, COUNTS, 5),
        "perTryTimeout": dice.choice(DURATIONS[:6]),
        "retryBackoffBaseInterval": _of(dice, DURATIONS, 6),
    }
    return {
        "source": {"kind": "ServiceAccount", "name": dice.choice(pool.accounts), "namespace": pool.home},
        "destinations": [{"kind": "Service", "name": service} for service in pool.services],
        "retryPolicy": answer,
    }


def _mutual_tls(dice: Dice, pool: "Pool") -> Document:
    plain = {
        "sources": [{"kind": "IPRange", "name": item} for item in dice.few(NETWORKS[:6], 3)],
        "matches": [{"kind": "HTTPRouteGroup", "name": item} for item in dice.few(pool.groups, 2)],
    }
    spec: Document = {"mode": dice.choice(("Permissive", "Permissive", "Strict"))}
    parts = {"plaintext": plain, "serviceAccounts": list(pool.accounts), "ports": list(pool.ports)}
    return spec | {item: parts[item] for item in dice.few(tuple(parts), 2)}


def _authorization(dice: Dice, pool: "Pool") -> Document:
    if dice.odds(4):
        return {"disabled": True}
    hosts = ("opa.opa", "fd00::7", "10.0.0.9", "EXAMPLE.com.", "*.example.com", "a..b", "")
    asked: Document = {"host": _of(dice, hosts, 4), "port": _of(dice, (9191, 1, 65535, 0), 3)}
    if dice.odds(4):
        asked = {"extensionService": {"name": "opa", "namespace": pool.home}}
    more = {"timeout": _of(dice, DURATIONS, 5), "failureModeAllow": True, "ports": list(pool.ports)}
    return asked | {item: more[item] for item in dice.few(tuple(more), 2)}


def _ingress(dice: Dice, pool: "Pool") -> Document:
    tls = {"skipClientCertValidation": dice.odds(2), "sniHosts": dice.few(HOSTS[:3], 2)}
    protocol = dice.choice(("http", "https"))
    backend: Document = {
        "name": dice.choice(pool.services),
        "port": {"number": dice.choice(pool.ports), "protocol": protocol},
    }
    sources = [{"kind": "IPRange", "name": item} for item in dice.few(NETWORKS[:6], 3)]
    principals = [{"kind": "AuthenticatedPrincipal", "name": _of(dice, ("a.b", "spiffe://x/y", "*", "é"), 2)}]
    return {
        "backends": [backend | ({"tls": tls} if protocol == "https" else {})],
        "sources": [*sources, *principals],
        "matches": [{"kind": "HTTPRouteGroup", "name": item} for item in dice.few(pool.groups, 1)],
    }


def _egress(dice: Dice, pool: "Pool") -> Document:
    protocols = ("http", "https", "tcp", "tcp-server-first")
    numbers = dice.sample((80, 443, 8443, 9999), dice.randint(1, 2))
    return {
        "sources": [
            {"kind": "ServiceAccount", "name": account, "namespace": pool.home} for account in pool.accounts
        ],
        "hosts": dice.few(HOSTS[: 9 if dice.odds(8) else 4], 3),
        "ports": [{"number": number, "protocol": dice.choice(protocols)} for number in numbers],
        "ipAddresses": dice.few(NETWORKS[:6], 2),
        "matches": [
            {"apiGroup": "specs.smi-spec.io/v1alpha4", "kind": "HTTPRouteGroup", "name": item}
            for item in dice.few(pool.groups, 1)
        ],
    }


_OSM: Final = "policy.openservicemesh.io"
_OURS: Final = "policy.meshwright.dev"
KINDS: Final[dict[str, tuple[str, Callable[[Dice, "Pool"], Document]]]] = {
    "RoutePolicy": (_OURS, _routes),
    "UpstreamPolicy": (_OURS, _upstreams),
    "MutualTLS": (_OURS, _mutual_tls),
    "ExternalAuthorization": (_OURS, _authorization),
    "UpstreamTrafficSetting": (_OSM, _limits),
    "Retry": (_OSM, _retry),
    "IngressBackend": (_OSM, _ingress),
    "Egress": (_OSM, _egress),
}
"""The kinds, each with its group and what makes one's `spec`."""
