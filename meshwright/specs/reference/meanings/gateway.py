"""Meanings of the fields of the Gateway API's routes and grants."""

from typing import Final

from meshwright.specs.gateway import forms
from meshwright.specs.gateway.forms import TextForm
from meshwright.specs.reference.meaning import METHOD, Form, Meaning, Meanings, under

_STATUS: Final = Form("status from 400 to 599", {"type": "integer", "minimum": 400, "maximum": 599})


def form_of(words: str, form: TextForm) -> Form:
    """Return the form of a text for the reference."""
    pattern = f"^(?:{form.pattern.pattern})$"
    return Form(words, {"type": "string", "pattern": pattern, "maxLength": form.longest})


GROUP: Final = form_of("API group", forms.GROUP)
KIND: Final = form_of("kind", forms.KIND)
NAME: Final = Form("name", {"type": "string", "minLength": 1, "maxLength": forms.NAME.longest})
NAMESPACE: Final = form_of("DNS label", forms.NAMESPACE)
SECTION: Final = form_of("name", forms.SECTION)
HOSTNAME: Final = form_of("DNS name, or wildcard such as `*.example.com`", forms.HOSTNAME)
_PRECISE: Final = form_of("DNS name", forms.PRECISE_HOSTNAME)
_FIELD: Final = form_of("name of a header or parameter", forms.FIELD_NAME)
_DURATION: Final = form_of("duration of h, m, s or ms", forms.DURATION)
_ORIGIN: Final = form_of("origin such as `https://shop.example`, or `*`", forms.ORIGIN)

_AGE: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning(
        "The age; of two equal matches, the one of the older route decides."
    ),
    "metadata.generation": Meaning("The number of changes; the status of a route repeats it."),
}
_PARENTS: Final[Meanings] = {
    "spec": Meaning("The parents and the rules."),
    "spec.parentRefs": Meaning("The Services whose requests the route decides, at most 32."),
    "spec.parentRefs[].group": Meaning(
        "The API group of the parent; empty for a Service.", "`gateway.networking.k8s.io`", GROUP
    ),
    "spec.parentRefs[].kind": Meaning(
        "The kind of the parent: `Service` in a mesh. Other kinds have no effect.", "`Gateway`", KIND
    ),
    "spec.parentRefs[].namespace": Meaning(
        "The namespace of the parent. In another namespace than the parent's, a route is only for callers of "
        "the route's namespace.",
        "the route's namespace",
        NAMESPACE,
    ),
    "spec.parentRefs[].name": Meaning("The name of the parent.", form=NAME),
    "spec.parentRefs[].sectionName": Meaning("The name of the Service's port.", "all ports", SECTION),
    "spec.parentRefs[].port": Meaning("The number of the Service's port.", "all ports"),
}
_HOSTNAMES: Final[Meanings] = {
    "spec.hostnames": Meaning("The hosts of requests, for gateways; no effect in a mesh.", form=HOSTNAME)
}
_RULE: Final[Meanings] = {
    "spec.rules[].name": Meaning("The name of the rule, different in each rule.", form=SECTION)
}
_OBJECT: Final[Meanings] = {
    "group": Meaning("The API group; empty for a Service.", "the empty group", GROUP),
    "kind": Meaning(
        "The kind; requests to other kinds than Service are answered with 500.", "`Service`", KIND
    ),
    "namespace": Meaning("The namespace.", "the route's namespace", NAMESPACE),
    "name": Meaning("The name.", form=NAME),
    "port": Meaning("The number of the Service's port; required for a Service."),
}
_BACKENDS: Final[Meanings] = {
    "backendRefs": Meaning(
        "The Services that get the requests. A backend that does not exist keeps its share, which gets an "
        "error."
    ),
    **under("backendRefs[]", _OBJECT),
    "backendRefs[].weight": Meaning("The share of the requests, relative to the sum of the rule's weights."),
}
_CHANGES: Final[Meanings] = {
    "set": Meaning("Headers that replace present ones."),
    "set[].name": Meaning("The name of the header, in upper or lower case.", form=_FIELD),
    "set[].value": Meaning("The value of the header."),
    "add": Meaning("Headers that are added to present ones."),
    "add[].name": Meaning("The name of the header, in upper or lower case.", form=_FIELD),
    "add[].value": Meaning("The value of the header."),
    "remove": Meaning("The names of headers to remove.", form=Form("name of a header", {"type": "string"})),
}
_PATH: Final[Meanings] = {
    "path": Meaning("The new path; the query stays.", "the path of the request"),
    "path.type": Meaning("Whether the whole path, or the matched prefix, is replaced."),
    "path.replaceFullPath": Meaning("The new path."),
    "path.replacePrefixMatch": Meaning(
        "The new beginning of the path in place of the prefix. It needs exactly one match, a prefix."
    ),
}
_GRPC_FILTERS: Final[Meanings] = {
    "filters": Meaning("Changes of requests and answers; each type at most once, except mirrors."),
    "filters[].type": Meaning("The type; the field of the type's name has the content."),
    "filters[].requestHeaderModifier": Meaning("Changes of the request's headers."),
    **under("filters[].requestHeaderModifier", _CHANGES),
    "filters[].responseHeaderModifier": Meaning("Changes of the answer's headers."),
    **under("filters[].responseHeaderModifier", _CHANGES),
    "filters[].requestMirror": Meaning("Copies of requests for another backend; its answers are dropped."),
    "filters[].requestMirror.backendRef": Meaning("The backend."),
    **under("filters[].requestMirror.backendRef", _OBJECT),
    "filters[].requestMirror.percent": Meaning("The percentage of requests.", "all requests"),
    "filters[].requestMirror.fraction": Meaning("The share of requests, in place of `percent`."),
    "filters[].requestMirror.fraction.numerator": Meaning("The numerator."),
    "filters[].requestMirror.fraction.denominator": Meaning("The denominator."),
}
_BACKEND_FILTERS: Final[Meanings] = {
    **_GRPC_FILTERS,
    "filters[].urlRewrite": Meaning("Another host or path for the backend."),
    "filters[].urlRewrite.hostname": Meaning("The host.", "the host of the request", _PRECISE),
    **under("filters[].urlRewrite", _PATH),
}
_FILTERS: Final[Meanings] = {
    **_BACKEND_FILTERS,
    "filters[].requestRedirect": Meaning("An answer with another location, in place of backends."),
    "filters[].requestRedirect.scheme": Meaning("The scheme.", "the scheme of the request"),
    "filters[].requestRedirect.hostname": Meaning("The host.", "the host of the request", _PRECISE),
    **under("filters[].requestRedirect", _PATH),
    "filters[].requestRedirect.port": Meaning("The port.", "the port of `scheme`, else the called port"),
    "filters[].requestRedirect.statusCode": Meaning("The status: 301, 302, 303, 307 or 308."),
    "filters[].cors": Meaning("Cross-origin requests of browsers that the caller's proxy answers or allows."),
    "filters[].cors.allowOrigins": Meaning("The allowed origins.", "no origin", _ORIGIN),
    "filters[].cors.allowMethods": Meaning("The allowed methods, or `*`.", form=METHOD),
    "filters[].cors.allowHeaders": Meaning("The allowed headers of requests, or `*`.", form=_FIELD),
    "filters[].cors.exposeHeaders": Meaning("The headers that a script may read, or `*`.", form=_FIELD),
    "filters[].cors.allowCredentials": Meaning("Whether requests may have credentials."),
    "filters[].cors.maxAge": Meaning("The seconds for which a browser may remember the answer."),
}
_HEADERS: Final[Meanings] = {
    "headers": Meaning("The headers of the request, all of them; of equal names the first counts."),
    "headers[].type": Meaning("Whether `value` is the text, or a regular expression (RE2) for all of it."),
    "headers[].name": Meaning("The name, in upper or lower case.", form=_FIELD),
    "headers[].value": Meaning("The value."),
}
_HTTP_MATCHES: Final[Meanings] = {
    "matches": Meaning("The requests of the rule, by any of at most 64 matches.", "all requests"),
    "matches[].path": Meaning("The path of the request.", "every path"),
    "matches[].path.type": Meaning(
        "Whether `value` is the path, its first segments, or a regular expression."
    ),
    "matches[].path.value": Meaning("The path, without the query.", "`/`"),
    **under("matches[]", _HEADERS),
    "matches[].queryParams": Meaning("The query parameters, all of them."),
    "matches[].queryParams[].type": Meaning("Whether `value` is the text, or a regular expression (RE2)."),
    "matches[].queryParams[].name": Meaning("The name.", form=_FIELD),
    "matches[].queryParams[].value": Meaning("The value; the first one of a repeated parameter counts."),
    "matches[].method": Meaning("The method.", "every method"),
}
_GRPC_MATCHES: Final[Meanings] = {
    "matches": Meaning("The calls of the rule, by any of at most 64 matches.", "all calls"),
    "matches[].method": Meaning("The method; `service`, `method` or both must be present.", "every method"),
    "matches[].method.type": Meaning("Whether the names are texts or regular expressions (RE2)."),
    "matches[].method.service": Meaning("The full name of the service, for example `shop.Cart`."),
    "matches[].method.method": Meaning("The name of the method, for example `Add`."),
    **under("matches[]", _HEADERS),
}
HTTP_ROUTE: Final[Meanings] = {
    **_AGE,
    **_PARENTS,
    **_HOSTNAMES,
    "spec.rules": Meaning(
        "The rules, at most 16. Of all matches the most specific one decides; a request without a match is "
        "answered with 404.",
        "one rule without backends",
    ),
    **_RULE,
    **under("spec.rules[]", _HTTP_MATCHES),
    **under("spec.rules[]", _FILTERS),
    **under("spec.rules[]", _BACKENDS),
    **under("spec.rules[].backendRefs[]", _BACKEND_FILTERS),
    "spec.rules[].timeouts": Meaning("Time limits; `0s` turns a limit off."),
    "spec.rules[].timeouts.request": Meaning(
        "The time limit of the request with all its attempts.", "no limit", _DURATION
    ),
    "spec.rules[].timeouts.backendRequest": Meaning(
        "The time limit of one attempt, at most `request`.", "no limit", _DURATION
    ),
    "spec.rules[].retry": Meaning("Further attempts after a failed connection.", "the mesh's retries"),
    "spec.rules[].retry.attempts": Meaning("The number of further attempts; 0 turns all retries off."),
    "spec.rules[].retry.codes": Meaning("Statuses of answers that are tried again too.", form=_STATUS),
    "spec.rules[].retry.backoff": Meaning(
        "The shortest delay before a retry.", "the mesh's delay", _DURATION
    ),
}
GRPC_ROUTE: Final[Meanings] = {
    **_AGE,
    **_PARENTS,
    **_HOSTNAMES,
    "spec.rules": Meaning(
        "The rules, at most 16. Of all matches the most specific one decides; a call without a match is "
        "answered with UNIMPLEMENTED."
    ),
    **_RULE,
    **under("spec.rules[]", _GRPC_MATCHES),
    **under("spec.rules[]", _GRPC_FILTERS),
    **under("spec.rules[]", _BACKENDS),
    **under("spec.rules[].backendRefs[]", _GRPC_FILTERS),
}
TCP_ROUTE: Final[Meanings] = {
    **_AGE,
    **_PARENTS,
    "spec.rules": Meaning("The rule with the backends."),
    **_RULE,
    **under("spec.rules[]", _BACKENDS),
}
TLS_ROUTE: Final[Meanings] = {
    **TCP_ROUTE,
    "spec.hostnames": Meaning("The server names that the client asks for.", form=HOSTNAME),
}
REFERENCE_GRANT: Final[Meanings] = {
    "spec": Meaning("References between namespaces; a mesh does not need them."),
    "spec.from": Meaning("The objects that may refer."),
    "spec.from[].group": Meaning("The API group.", form=GROUP),
    "spec.from[].kind": Meaning("The kind.", form=KIND),
    "spec.from[].namespace": Meaning("The namespace.", form=NAMESPACE),
    "spec.to": Meaning("The objects in the grant's namespace to which others may refer."),
    "spec.to[].group": Meaning("The API group; empty for a Service.", form=GROUP),
    "spec.to[].kind": Meaning("The kind.", form=KIND),
    "spec.to[].name": Meaning("The name.", "all objects of the kind", NAME),
}
