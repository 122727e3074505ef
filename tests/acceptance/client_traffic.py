"""Random ClientTrafficPolicies for the listeners of a gateway."""

from typing import TYPE_CHECKING, Any, Final

from tests.acceptance.values import ODD, Dice

if TYPE_CHECKING:
    from tests.acceptance.manifests import Pool

Document = dict[str, Any]

_GATEWAY: Final = {"group": "gateway.networking.k8s.io", "kind": "Gateway"}
_TIMES: Final = ("0s", "1ms", "90s", "24h")
_SIZES: Final = ("64Ki", "65536", 65536, "1Gi", "1M")
_SLASHES: Final = ("Reject", "Keep", "UnescapeAndRedirect", "UnescapeAndForward")
_PATHS: Final = ("/a/.*", "/b|/c", ".*", "[^/]+")
_SERVICE: Final = {"host": "limiter.example", "port": 8081}


def client_policy(dice: Dice, pool: "Pool", gateway: str, listeners: list[Document]) -> Document:
    """Make a policy for a gateway, or for one of its listeners; some have one odd value."""
    target: Document = {**_GATEWAY, "name": gateway}
    if dice.odds(2):
        target["sectionName"] = dice.choice(listeners).get("name")
    sections = {
        "connections": {"max": dice.randint(1, 9), "bufferSize": dice.choice(_SIZES)},
        "headers": {"maxSize": dice.choice(("1Ki", "64Ki", "8Mi")), "maxCount": dice.randint(1, 10_000)},
        "timeouts": {
            name: dice.choice(_TIMES)
            for name in dice.few(("idle", "requestHeaders", "request", "streamIdle"), 4)
        },
        "http2": {
            "maxConcurrentStreams": dice.randint(1, 2**31 - 1),
            "initialStreamWindowSize": dice.choice(_SIZES),
            "initialConnectionWindowSize": dice.choice(_SIZES),
        },
        "path": {"mergeSlashes": dice.odds(2), "escapedSlashes": dice.choice(_SLASHES)},
        "clientAddress": {"trustedHops": dice.randint(0, 32), "proxyProtocol": dice.odds(2)},
        "rateLimit": {"local": _local(dice), **({"global": _global()} if dice.odds(3) else {})},
        "httpRoutes": [
            {"path": path, "rateLimit": {"local": _rate(dice, "requests")}} for path in dice.few(_PATHS, 3)
        ],
    }
    chosen = dice.few(tuple(sections), 8)
    spec: Document = {"targetRefs": [target], **{name: sections[name] for name in chosen}}
    if dice.odds(4):
        spec[dice.choice(sorted(spec))] = dice.choice(ODD)
    return {
        "apiVersion": "policy.meshwright.dev/v1alpha1",
        "kind": "ClientTrafficPolicy",
        "metadata": {"name": dice.name(), "namespace": pool.home},
        "spec": spec,
    }


def _rate(dice: Dice, counted: str) -> Document:
    unit = dice.choice(("second", "minute", "hour"))
    return {counted: dice.randint(1, 2**31), "unit": unit, "burst": dice.randint(0, 99)}


def _local(dice: Dice) -> Document:
    http, client = _rate(dice, "requests"), _rate(dice, "requests")
    if dice.odds(2):
        http |= {"responseStatusCode": 503, "responseHeadersToAdd": [{"name": "retry-after", "value": "%"}]}
    limits = {"tcp": _rate(dice, "connections"), "http": http, "perClient": client}
    return {name: limits[name] for name in dice.few(tuple(limits), 3)}


def _global() -> Document:
    asked = {"rateLimitService": _SERVICE, "domain": "edge"}
    return {
        "tcp": {**asked, "descriptors": [{"entries": [{"key": "a", "value": "b"}]}]},
        "http": {**asked, "descriptors": [{"entries": [{"remoteAddress": {}}]}]},
    }
