"""Random HTTPRoutes, and requests that their matches are likely to fit."""

from dataclasses import dataclass
from random import Random
from typing import Final

from tests.differential.routes import filters
from tests.differential.routes.manifests import HTTP_FORM, backends, header_matches, route
from tests.differential.topology import Document, Offers

_VALUES: Final = (
    *(("Exact", "/books"), ("Exact", "/books/1"), ("Exact", "/status"), ("Exact", "/"), ("Exact", "/books/")),
    *(("PathPrefix", "/"), ("PathPrefix", "/books"), ("PathPrefix", "/books/"), ("PathPrefix", "/b")),
    *(("PathPrefix", "/books/1"), ("RegularExpression", "/books/[0-9]+"), ("RegularExpression", "/b.*")),
    *(
        ("RegularExpression", "/[^/]*"),
        ("RegularExpression", "/(books|status)"),
        ("RegularExpression", "/books"),
    ),
)
_EXAMPLES: Final = {
    "/books/[0-9]+": "/books/7",
    "/b.*": "/bookshelf",
    "/[^/]*": "/status",
    "/(books|status)": "/books",
}
_PATHS: Final = (
    "/books",
    "/books/1",
    "/books/x",
    "/books/",
    "/status",
    "/",
    "/bookshelf",
    "/b",
    "/b/c",
    "/Books",
)
_QUERIES: Final = ("", "", "?q=1", "?q=2", "?q=1&q=2", "?p=1&q=1", "?Q=1", "?q=%31", "?q=", "?q")
_TAGS: Final = (
    (),
    (),
    (("x-tag", "a"),),
    (("X-Tag", "b"),),
    (("x-tag", "a"), ("x-other", "7")),
    (("x-tag", "a"), ("x-tag", "b")),
)
_HOSTS: Final = ("web.shop", "web.shop", "Web.Shop", "web.shop:8080", "web.shop:80", "web.shop:443")
_ASKING: Final = (
    "https://shop.example",
    "https://a.shop.example",
    "http://shop.example:8080",
    "https://evil.example",
)


@dataclass(frozen=True)
class Asked:
    """The parts of a request: the method, the path with its query, and the headers."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]


def http_route(random: Random, name: str, favoured: Offers) -> Document:
    """Make a route with up to three rules."""
    return route(random, HTTP_FORM, name, favoured, [_rule(random) for _ in range(random.randint(1, 3))])


def _rule(random: Random) -> Document:
    matches = [_match(random) for _ in range(random.randint(0, 2))]
    rule: Document = {"matches": matches} if matches else {}
    prefix = _only_prefix(matches)
    if random.random() < 0.15:
        rule["filters"] = [filters.redirect(random, prefix)]
        if random.random() < 0.2:
            rule["filters"].append(filters.request_headers(random))
        return rule
    if made := _filters(random, prefix):
        rule["filters"] = made
    if to := backends(random, HTTP_FORM, least=0):
        rule["backendRefs"] = to
        for item in to:
            if random.random() < 0.2:
                item["filters"] = [_of_backend(random, prefix)]
    if random.random() < 0.12:
        rule["timeouts"] = random.choice(
            (
                {"request": "2s"},
                {"request": "0s"},
                {"backendRequest": "1s"},
                {"request": "3s", "backendRequest": "1s"},
            )
        )
    if random.random() < 0.15:
        rule["retry"] = _retry(random)
    return rule


def _filters(random: Random, prefix: str | None) -> list[Document]:
    made = []
    if random.random() < 0.25:
        made.append(filters.request_headers(random))
    if random.random() < 0.15:
        made.append(filters.response_headers(random, "x-app"))
    if random.random() < 0.2:
        made.append(filters.rewrite(random, prefix))
    if random.random() < 0.1:
        made.extend(filters.mirror(random, HTTP_FORM) for _ in range(random.choice((1, 1, 2))))
    if random.random() < 0.12:
        made.append(filters.cors(random))
    if random.random() < 0.03:
        made.append(filters.extension())
    return made


def _of_backend(random: Random, prefix: str | None) -> Document:
    """Make a filter of a backend; redirects and CORS are not carried out there."""
    makers = (
        lambda: filters.request_headers(random),
        lambda: filters.request_headers(random),
        lambda: filters.response_headers(random, "x-backend"),
        lambda: filters.rewrite(random, None),
        lambda: filters.mirror(random, HTTP_FORM),
        lambda: filters.cors(random),
    )
    return random.choice(makers)()


def _retry(random: Random) -> Document:
    retry: Document = {"attempts": random.choice((0, 1, 2, 3)), "backoff": "1ms"}
    if random.random() < 0.8:
        retry["codes"] = random.choice(([500], [503], [500, 503], [504], [503, 504]))
    return retry


def _match(random: Random) -> Document:
    match: Document = {}
    if random.random() < 0.8:
        kind, value = random.choice(_VALUES)
        match["path"] = {"type": kind, "value": value}
    if random.random() < 0.2:
        match["method"] = random.choice(("GET", "POST", "PUT"))
    if random.random() < 0.25:
        match["headers"] = header_matches(random)
    if random.random() < 0.2:
        kind, value = random.choice((("Exact", "1"), ("Exact", "2"), ("RegularExpression", "[0-9]+")))
        match["queryParams"] = [{"name": "q", "type": kind, "value": value}]
    return match


def _only_prefix(matches: list[Document]) -> str | None:
    """Return the prefix of a rule that has one match, of a prefix; only there a prefix can be replaced."""
    if len(matches) != 1 or matches[0].get("path", {}).get("type") != "PathPrefix":
        return None
    return str(matches[0]["path"]["value"])


def asked_of(random: Random, made: Document) -> Asked:
    """Make a request for a rule of a route, in most cases one that a match of the rule fits."""
    rule = random.choice(made["spec"]["rules"])
    match = random.choice(rule.get("matches", [{}]))
    is_fit = random.random() < 0.75
    method = match.get("method", "GET") if is_fit else random.choice(("GET", "POST", "HEAD", "PUT"))
    path = _path(random, match.get("path")) if is_fit else random.choice(_PATHS)
    query = "?q=1&p=2" if is_fit and "queryParams" in match else random.choice(_QUERIES)
    headers = [("Host", random.choice(_HOSTS)), *_tags(random, match, is_fit=is_fit)]
    kinds = {item["type"] for item in rule.get("filters", ())}
    if "CORS" in kinds and random.random() < 0.7:
        headers.append(("Origin", random.choice(_ASKING)))
        if random.random() < 0.5:
            method = "OPTIONS"
            headers.append(("Access-Control-Request-Method", random.choice(("GET", "PUT"))))
    if ("retry" in rule or "timeouts" in rule) and "RequestMirror" not in kinds and random.random() < 0.7:
        is_slow = "timeouts" in rule and random.random() < 0.4
        failing = f"{random.choice((500, 503))} {random.choice((1, 2, 4))}"
        headers.append(("x-slow", random.choice("12")) if is_slow else ("x-fail", failing))
    return Asked(method, path + query, tuple(headers))


def _tags(random: Random, match: Document, *, is_fit: bool) -> tuple[tuple[str, str], ...]:
    if not is_fit or "headers" not in match:
        return random.choice(_TAGS)
    first = {item["name"].lower(): item for item in reversed(match["headers"])}
    values = ((name, "a" if item["type"] != "Exact" else item["value"]) for name, item in first.items())
    return tuple((name, value) for name, value in values if name != "host")


def _path(random: Random, match: Document | None) -> str:
    if match is None:
        return random.choice(_PATHS)
    value = str(match["value"])
    if match["type"] == "PathPrefix":
        return value.rstrip("/") + random.choice(("", "/", "/1", "/x/y", "shelf")) or "/"
    return _EXAMPLES.get(value, value)
