"""Tests of rules that the CRDs' schemas and CEL rules refuse: the reader refuses the same from a file.

The cases are from the CRDs of release 1.7. The tests with a real API server compare the verdicts.
"""

import pytest

from tests.unit.specs.gateway.manifests import faults, of_rule

RULE = "spec.rules[0]"
TO_WEB = "backendRefs: [{name: web, port: 80}]"


def _filter(kind: str, content: str) -> str:
    field = {"URLRewrite": "urlRewrite", "CORS": "cors"}.get(kind, kind[0].lower() + kind[1:])
    return f"filters: [{{type: {kind}, {field}: {content}}}]"


REFUSED = [
    # matches
    ("matches: [{path: {value: a}}]", "matches[0].path.value"),
    ("matches: [{path: {value: ''}}]", "matches[0].path.value"),
    ("matches: [{path: {value: /a//b}}]", "matches[0].path.value"),
    ("matches: [{path: {value: /a/./b}}]", "matches[0].path.value"),
    ("matches: [{path: {value: /a/../b}}]", "matches[0].path.value"),
    ("matches: [{path: {value: /a/..}}]", "matches[0].path.value"),
    ("matches: [{path: {value: /a/.}}]", "matches[0].path.value"),
    ("matches: [{path: {value: /a%2Fb}}]", "matches[0].path.value"),
    ("matches: [{path: {value: /a%2fb}}]", "matches[0].path.value"),
    ("matches: [{path: {value: '/a#b'}}]", "matches[0].path.value"),
    ("matches: [{path: {value: '/a?b'}}]", "matches[0].path.value"),
    ("matches: [{path: {value: '/a b'}}]", "matches[0].path.value"),
    ("matches: [{path: {value: /%zz}}]", "matches[0].path.value"),
    ("matches: [{path: {type: Exact, value: b}}]", "matches[0].path.value"),
    ("matches: [{path: {type: Glob, value: /b}}]", "matches[0].path.type"),
    (f"matches: [{{path: {{value: /{'a' * 1024}}}}}]", "matches[0].path.value"),
    ("matches: [{method: get}]", "matches[0].method"),
    ("matches: [{method: ''}]", "matches[0].method"),
    ("matches: [{headers: [{name: a}]}]", "matches[0].headers[0].value"),
    ("matches: [{headers: [{name: a, value: ''}]}]", "matches[0].headers[0].value"),
    ("matches: [{headers: [{name: 'a:', value: b}]}]", "matches[0].headers[0].name"),
    ("matches: [{headers: [{name: a, value: b, type: Prefix}]}]", "matches[0].headers[0].type"),
    ("matches: [{headers: [{name: a, value: b}, {name: a, value: c}]}]", "matches[0].headers[1].name"),
    ("matches: [{queryParams: [{name: 'a[]', value: b}]}]", "matches[0].queryParams[0].name"),
    (
        "matches: [{queryParams: [{name: a, value: b}, {name: a, value: c}]}]",
        "matches[0].queryParams[1].name",
    ),
    # backends
    ("backendRefs: [{name: web}]", "backendRefs[0].port"),
    ("backendRefs: [{port: 80}]", "backendRefs[0].name"),
    ("backendRefs: [{name: web, port: 0}]", "backendRefs[0].port"),
    ("backendRefs: [{name: web, port: 65536}]", "backendRefs[0].port"),
    ("backendRefs: [{name: web, port: 80, weight: -1}]", "backendRefs[0].weight"),
    ("backendRefs: [{name: web, port: 80, weight: 1000001}]", "backendRefs[0].weight"),
    ("backendRefs: [{name: web, port: 80, namespace: A}]", "backendRefs[0].namespace"),
    ("backendRefs: [{name: web, port: 80, group: A}]", "backendRefs[0].group"),
    ("backendRefs: [{name: web, port: 80, kind: a_b}]", "backendRefs[0].kind"),
    ("name: A", "name"),
    # filters
    ("filters: [{}]", "filters[0].type"),
    ("filters: [{type: Unheard}]", "filters[0].type"),
    ("filters: [{type: RequestMirror}]", "filters[0].requestMirror"),
    ("filters: [{type: CORS, cors: {}, urlRewrite: {}}]", "filters[0].urlRewrite"),
    (
        "filters: [" + ", ".join(["{type: RequestHeaderModifier, requestHeaderModifier: {}}"] * 2) + "]",
        "filters",
    ),
    (
        "filters: [{type: RequestRedirect, requestRedirect: {}}, {type: URLRewrite, urlRewrite: {}}]",
        "filters",
    ),
    (f"{_filter('RequestRedirect', '{}')}, {TO_WEB}", "backendRefs"),
    (_filter("RequestRedirect", "{statusCode: 304}"), "filters[0].requestRedirect.statusCode"),
    (_filter("RequestRedirect", "{scheme: ftp}"), "filters[0].requestRedirect.scheme"),
    (_filter("RequestRedirect", "{hostname: '*.a'}"), "filters[0].requestRedirect.hostname"),
    (_filter("RequestRedirect", "{port: 0}"), "filters[0].requestRedirect.port"),
    (_filter("URLRewrite", "{path: {replaceFullPath: /a}}"), "filters[0].urlRewrite.path.type"),
    (
        _filter("URLRewrite", "{path: {type: ReplaceFullPath}}"),
        "filters[0].urlRewrite.path.replaceFullPath",
    ),
    (
        _filter("URLRewrite", "{path: {type: ReplaceFullPath, replaceFullPath: /, replacePrefixMatch: /}}"),
        "filters[0].urlRewrite.path.replacePrefixMatch",
    ),
    (
        "matches: [{path: {type: Exact, value: /a}}], "
        + _filter("URLRewrite", "{path: {type: ReplacePrefixMatch, replacePrefixMatch: /b}}"),
        "filters",
    ),
    (
        "matches: [{}, {}], "
        + _filter("RequestRedirect", "{path: {type: ReplacePrefixMatch, replacePrefixMatch: /b}}"),
        "filters",
    ),
    (
        "matches: [], "
        + _filter("RequestRedirect", "{path: {type: ReplacePrefixMatch, replacePrefixMatch: /b}}"),
        "filters",
    ),
    (
        "matches: [{}, {}], backendRefs: [{name: web, port: 80, "
        + _filter("URLRewrite", "{path: {type: ReplacePrefixMatch, replacePrefixMatch: /b}}")
        + "}]",
        "backendRefs",
    ),
    (
        "matches: [{}, {}], backendRefs: [{name: web, port: 80, "
        + _filter("RequestRedirect", "{path: {type: ReplacePrefixMatch, replacePrefixMatch: /b}}")
        + "}]",
        "backendRefs",
    ),
    (_filter("RequestMirror", "{}"), "filters[0].requestMirror.backendRef"),
    (_filter("RequestMirror", "{backendRef: {name: a}}"), "filters[0].requestMirror.backendRef.port"),
    (
        _filter("RequestMirror", "{backendRef: {name: a, port: 1}, percent: 101}"),
        "filters[0].requestMirror.percent",
    ),
    (
        _filter("RequestMirror", "{backendRef: {name: a, port: 1}, percent: 1, fraction: {numerator: 1}}"),
        "filters[0].requestMirror.fraction",
    ),
    (
        _filter("RequestMirror", "{backendRef: {name: a, port: 1}, fraction: {numerator: 101}}"),
        "filters[0].requestMirror.fraction.numerator",
    ),
    (
        _filter("RequestMirror", "{backendRef: {name: a, port: 1}, fraction: {denominator: 2}}"),
        "filters[0].requestMirror.fraction.numerator",
    ),
    (
        _filter("RequestHeaderModifier", "{set: [{name: a, value: ''}]}"),
        "filters[0].requestHeaderModifier.set[0].value",
    ),
    (
        _filter("RequestHeaderModifier", "{add: [{name: a, value: b}, {name: a, value: c}]}"),
        "filters[0].requestHeaderModifier.add[1].name",
    ),
    (
        _filter("ResponseHeaderModifier", "{remove: [a, a]}"),
        "filters[0].responseHeaderModifier.remove[1]",
    ),
    (_filter("CORS", "{allowOrigins: [a.example]}"), "filters[0].cors.allowOrigins[0]"),
    (_filter("CORS", "{allowOrigins: ['*', 'https://a']}"), "filters[0].cors.allowOrigins"),
    (_filter("CORS", "{allowMethods: [GET, '*']}"), "filters[0].cors.allowMethods"),
    (_filter("CORS", "{allowMethods: [PURGE]}"), "filters[0].cors.allowMethods[0]"),
    (_filter("CORS", "{allowHeaders: [a, '*']}"), "filters[0].cors.allowHeaders"),
    (_filter("CORS", "{exposeHeaders: [a, a]}"), "filters[0].cors.exposeHeaders[1]"),
    (_filter("CORS", "{maxAge: 0}"), "filters[0].cors.maxAge"),
    (_filter("ExtensionRef", "{kind: A, name: a}"), "filters[0].extensionRef.group"),
    # timeouts and retries
    ("timeouts: {request: 10}", "timeouts.request"),
    ("timeouts: {request: 1.5s}", "timeouts.request"),
    ("timeouts: {request: 1h1m1s1ms1h}", "timeouts.request"),
    ("timeouts: {request: 1s, backendRequest: 2s}", "timeouts.backendRequest"),
    ("retry: {attempts: -1}", "retry.attempts"),
    ("retry: {codes: [399]}", "retry.codes[0]"),
    ("retry: {codes: [500, 500]}", "retry.codes"),
    ("retry: {backoff: soon}", "retry.backoff"),
]
"""Rules of HTTPRoutes that the CRDs refuse, with the first field that is wrong."""

REFUSED_GRPC = [
    ("matches: [{method: {}}]", "matches[0].method"),
    ("matches: [{method: {type: Exact}}]", "matches[0].method"),
    ("matches: [{method: {service: a/b}}]", "matches[0].method.service"),
    ("matches: [{method: {service: a, method: b-c}}]", "matches[0].method.method"),
    ("matches: [{method: {method: ''}}]", "matches[0].method.method"),
    ("matches: [{path: {value: /a}}]", "matches[0].path"),
    ("filters: [{type: URLRewrite, urlRewrite: {}}]", "filters[0].type"),
    ("timeouts: {request: 1s}", "timeouts"),
]
"""Rules of GRPCRoutes that the CRDs refuse, with the first field that is wrong."""

ACCEPTED = [
    "matches: [{path: {value: /a;b=c}}]",
    "matches: [{path: {value: /a%20b/}}]",
    "matches: []",
    "timeouts: {request: 0s, backendRequest: 2s}",
    "timeouts: {request: 1h1m1s1ms}",
    "retry: {attempts: 0, codes: []}",
    "retry: {}",
    "backendRefs: [{name: a, group: gateway.networking.x-k8s.io, kind: XBackend}]",
    f"{_filter('RequestMirror', '{backendRef: {name: a, port: 1}, percent: 0}')}, {TO_WEB}",
    _filter("RequestMirror", "{backendRef: {name: a, port: 1}, fraction: {numerator: 0}}"),
    _filter("RequestRedirect", "{path: {type: ReplacePrefixMatch, replacePrefixMatch: /b}}"),
    _filter("CORS", "{exposeHeaders: [a, '*'], allowOrigins: ['https://*.a.example:8443']}"),
]
"""Rules of HTTPRoutes that the CRDs accept."""


@pytest.mark.parametrize(("rule", "field"), REFUSED)
def test_http_rule_that_the_crd_refuses_is_refused(rule: str, field: str) -> None:
    """The first problem is at the field with the mistake."""
    reading = of_rule(f"{{{rule}}}")
    assert faults(reading)[:1] == [f"{RULE}.{field}"]
    assert reading.objects == ()


@pytest.mark.parametrize(("rule", "field"), REFUSED_GRPC)
def test_grpc_rule_that_the_crd_refuses_is_refused(rule: str, field: str) -> None:
    """GRPCRoutes have fewer filters than HTTPRoutes, no paths and no timeouts."""
    assert faults(of_rule(f"{{{rule}}}", "GRPCRoute"))[:1] == [f"{RULE}.{field}"]


@pytest.mark.parametrize("rule", ACCEPTED)
def test_http_rule_that_the_crd_accepts_has_no_problem(rule: str) -> None:
    """Nothing that a user may write in a cluster is refused from a file."""
    assert of_rule(f"{{{rule}}}").problems == ()
