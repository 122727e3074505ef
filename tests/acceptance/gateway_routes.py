"""Random routes of the Gateway API for one mesh, with Services of the mesh as parents and backends.

About one value in each route is odd. Some odd values are refused, and others drop a rule.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from tests.acceptance.values import HEADERS, ODD, Dice

if TYPE_CHECKING:
    from tests.acceptance.manifests import Pool

Document = dict[str, Any]

GROUP: Final = "gateway.networking.k8s.io"
KINDS: Final = ("HTTPRoute", "HTTPRoute", "HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute")
PATHS: Final = (
    *("/", "/a", "/a/", "/a/b", "/a;b=c", "/%41", "/a.b+c", "/$1", "/~", "/a,b", "/(a)", "/*", "/%E9"),
    *("/:a@b", "/!'&=", "/" + "a" * 1023),
)
NEW_PATHS: Final = (
    *("/", "", "/b", "/b/", "/b/c", "/$1", "/\\1", "/\\", "/%41", "/{x}", "/a%b", "/é", "/a b", "b", "/a?b"),
    *("/a#b", "/\n", "/" + "b" * 1023),
)
VALUES: Final = (
    *("a", " a ", "%", "%%", "%REQ(x)%", "a" * 4096, "\t", "a\\b", '"', "{}", "$1"),
    *("é", "a\nb", "\0", "a\r", "\x7f"),
)
CHANGED: Final = ("x-tag", "X-Tag", "user-agent", "Cookie", "x-request-id", "_", "0", "!#$%&'*+-.^_`|~")
HOSTS: Final = ("a", "shop.example", "a-b.c", "a" * 63, ("a" * 60 + ".") * 4 + "a" * 9)
SERVER_NAMES: Final = (*HOSTS, "*.example", "*.a.b")
DURATIONS: Final = ("0s", "1ms", "500ms", "1m30s", "99999h", "1h1m1s1ms", "10s")
NUMBERS: Final = (0, 1, 2, 50, 99, 100, 2**31 - 1)


def route(dice: Dice, pool: "Pool", kinds: tuple[str, ...] = KINDS) -> Document:
    """Make a route of any kind, or of one of `kinds`."""
    kind = dice.choice(kinds)
    spec: Document = {"parentRefs": [_parent(dice, pool)], "rules": _rules(dice, pool, kind)}
    if kind == "TLSRoute":
        spec["hostnames"] = dice.few(SERVER_NAMES, 3) or ["a.b"]
    namespace = pool.home if dice.odds(2) else dice.choice(pool.namespaces)
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": kind,
        "metadata": {"name": dice.name(), "namespace": namespace},
        "spec": spec,
    }


def _parent(dice: Dice, pool: "Pool") -> Document:
    parent: Document = {
        "group": "",
        "kind": "Service",
        "name": dice.choice(pool.services),
        "namespace": pool.home,
    }
    if dice.odds(2):
        parent["port"] = dice.choice(pool.ports)
    return parent


def _rules(dice: Dice, pool: "Pool", kind: str) -> list[Document]:
    if kind in ("TLSRoute", "TCPRoute"):
        return [{"backendRefs": [_backend(dice, pool) for _ in range(dice.randint(1, 3))]}]
    make = _http_rule if kind == "HTTPRoute" else _grpc_rule
    rules = [make(dice, pool) for _ in range(dice.randint(1, 3))]
    if dice.odds(6):
        odd = dice.choice(rules)
        odd[dice.choice(sorted(odd))] = dice.choice(ODD)
    return rules


def _http_rule(dice: Dice, pool: "Pool") -> Document:
    is_prefix = dice.odds(2)
    matches = [_http_match(dice)] if is_prefix else [_any_match(dice) for _ in range(dice.randint(0, 3))]
    is_redirect = dice.odds(4)
    rule: Document = {"matches": matches, "filters": _filters(dice, pool, is_prefix, is_redirect)}
    if not is_redirect:
        rule["backendRefs"] = [_backend(dice, pool, is_prefix) for _ in range(dice.randint(0, 3))]
    if dice.odds(3):
        rule["timeouts"] = {"request": "0s", "backendRequest": dice.choice(DURATIONS)}
    if dice.odds(3):
        rule["retry"] = {
            "attempts": dice.choice(NUMBERS),
            "codes": dice.few((400, 404, 429, 500, 503, 599), 3),
            "backoff": dice.choice(DURATIONS),
        }
    return rule


def _grpc_rule(dice: Dice, pool: "Pool") -> Document:
    few = dice.few(("service", "method"), 2) or ["service"]
    names = {"service": ("a", "a.b.C", "_a", ".a.B"), "method": ("Get", "_x", "a1")}
    is_regex = dice.odds(3)
    method: Document = {name: dice.expression() if is_regex else dice.choice(names[name]) for name in few}
    method["type"] = "RegularExpression" if is_regex else "Exact"
    match = {"method": method, "headers": _fields(dice)}
    return {
        "matches": [match] if dice.odds(2) else [],
        "filters": [_filter(dice, pool, kind) for kind in dice.few(_GRPC_FILTERS, 2)],
        "backendRefs": [_backend(dice, pool) for _ in range(dice.randint(0, 3))],
    }


def _http_match(dice: Dice) -> Document:
    """Return a match by a path prefix."""
    return {"path": {"type": "PathPrefix", "value": dice.choice(PATHS)}, "headers": _fields(dice)}


def _any_match(dice: Dice) -> Document:
    kind = dice.choice(("Exact", "PathPrefix", "RegularExpression"))
    path = dice.expression() if kind == "RegularExpression" else dice.choice(PATHS)
    match: Document = {"path": {"type": kind, "value": path}, "headers": _fields(dice)}
    if dice.odds(2):
        match["method"] = dice.choice(("GET", "POST", "CONNECT", "TRACE"))
    if dice.odds(2):
        match["queryParams"] = _fields(dice, ("a", "A", "a.b", "_", "x" * 256, "$"))
    return match


def _fields(dice: Dice, names: tuple[str, ...] = HEADERS) -> list[Document]:
    few = dice.few([name for name in names if len(name) <= 256], 2)
    return [_field(dice, name) for name in dict.fromkeys(few)]


def _field(dice: Dice, name: str) -> Document:
    if dice.odds(3):
        return {"type": "RegularExpression", "name": name, "value": dice.expression() or ".*"}
    return {"type": "Exact", "name": name, "value": dice.choice(VALUES)[:1024]}


def _backend(dice: Dice, pool: "Pool", is_prefix: bool | None = None) -> Document:
    backend: Document = {
        "name": dice.choice((*pool.services, *pool.services, "gone")),
        "port": dice.choice(pool.ports),
        "weight": dice.choice((0, 1, 1, 50, 10**6)),
    }
    if dice.odds(8):
        backend |= {"group": "a.b", "kind": "Bucket"}
    if is_prefix is not None and dice.odds(3):
        backend["filters"] = _filters(dice, pool, is_prefix, False)
    return backend


def _filters(dice: Dice, pool: "Pool", is_prefix: bool, is_redirect: bool) -> list[Document]:
    kinds = [kind for kind in dice.few(tuple(_FILTERS), 4) if kind not in ("URLRewrite", "RequestRedirect")]
    if is_redirect:
        kinds.append("RequestRedirect")
    elif dice.odds(3):
        kinds.append("URLRewrite")
    return [_filter(dice, pool, kind, is_prefix) for kind in kinds]


def _filter(dice: Dice, pool: "Pool", kind: str, is_prefix: bool = False) -> Document:
    field, make = _FILTERS[kind]
    return {"type": kind, field: make(dice, pool, is_prefix)}


def _changes(dice: Dice, _: "Pool", __: bool) -> Document:
    names = [*dict.fromkeys(name.lower() for name in dice.few(HEADERS if dice.odds(20) else CHANGED, 3))]
    result: Document = {"set": [], "add": [], "remove": []}
    for name in names:
        part = dice.choice(("set", "add", "remove"))
        result[part].append(name if part == "remove" else {"name": name, "value": dice.choice(VALUES)})
    return result


def _mirror(dice: Dice, pool: "Pool", _: bool) -> Document:
    share: Document = dice.choice(
        ({}, {"percent": dice.choice((0, 1, 100))}, {"fraction": {"numerator": 1, "denominator": 3}})
    )
    return {
        "backendRef": {"name": dice.choice((*pool.services, "gone")), "port": dice.choice(pool.ports)},
        **share,
    }


def _path(dice: Dice, is_prefix: bool) -> Document:
    if is_prefix and dice.odds(2):
        return {"type": "ReplacePrefixMatch", "replacePrefixMatch": dice.choice(NEW_PATHS)}
    return {"type": "ReplaceFullPath", "replaceFullPath": dice.choice(NEW_PATHS)}


def _redirect(dice: Dice, _: "Pool", is_prefix: bool) -> Document:
    parts: dict[str, Callable[[], Any]] = {
        "scheme": lambda: dice.choice(("http", "https")),
        "hostname": lambda: dice.choice(HOSTS),
        "path": lambda: _path(dice, is_prefix),
        "port": lambda: dice.choice((1, 80, 443, 8080, 65535)),
        "statusCode": lambda: dice.choice((301, 302, 303, 307, 308)),
    }
    return {name: parts[name]() for name in dice.few(tuple(parts), 4)}


def _rewrite(dice: Dice, _: "Pool", is_prefix: bool) -> Document:
    parts: dict[str, Callable[[], Any]] = {
        "hostname": lambda: dice.choice(HOSTS),
        "path": lambda: _path(dice, is_prefix),
    }
    return {name: parts[name]() for name in dice.few(tuple(parts), 2)}


def _cors(dice: Dice, _: "Pool", __: bool) -> Document:
    origins = ("https://a", "http://*.a.b:8080", "https://*", "http://a-b.c:1")
    return {
        "allowOrigins": dice.choice((["*"], dice.few(origins, 3))),
        "allowMethods": dice.choice((["*"], dice.few(("GET", "PUT", "TRACE"), 2))),
        "allowHeaders": dice.choice((["*"], dice.few(("a", "X-B"), 2))),
        "exposeHeaders": dice.few(("a", "X-B", "*"), 2),
        "allowCredentials": dice.odds(2),
        "maxAge": dice.choice((1, 5, 2**31 - 1)),
    }


def _extension(_: Dice, __: "Pool", ___: bool) -> Document:
    return {"group": "a.b", "kind": "Limit", "name": "x"}


_FILTERS: Final[dict[str, tuple[str, Callable[[Dice, "Pool", bool], Document]]]] = {
    "RequestHeaderModifier": ("requestHeaderModifier", _changes),
    "ResponseHeaderModifier": ("responseHeaderModifier", _changes),
    "RequestMirror": ("requestMirror", _mirror),
    "RequestRedirect": ("requestRedirect", _redirect),
    "URLRewrite": ("urlRewrite", _rewrite),
    "CORS": ("cors", _cors),
    "ExtensionRef": ("extensionRef", _extension),
}
_GRPC_FILTERS: Final = ("RequestHeaderModifier", "ResponseHeaderModifier", "RequestMirror")
