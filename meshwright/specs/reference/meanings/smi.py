"""Meanings of the fields of SMI's kinds."""

from typing import Final

from meshwright.specs.reference.meaning import (
    DIGITS,
    LABEL,
    METHOD,
    NAME,
    QUANTITY,
    ROUTE_KIND,
    SERVICE,
    Meaning,
    Meanings,
    under,
)

_SPEC: Final[Meanings] = {"spec": Meaning("The specification of the object.")}
_DESTINATION: Final[Meanings] = {
    "destination": Meaning("The identity that clients may call."),
    "destination.kind": Meaning("The kind of the identity."),
    "destination.name": Meaning("The name of the ServiceAccount.", form=NAME),
    "destination.namespace": Meaning(
        "The namespace; must be the object's own.", "the object's namespace", LABEL
    ),
    "destination.port": Meaning("The only port that clients may call.", "every port", DIGITS),
}
_SOURCES: Final[Meanings] = {
    "sources": Meaning("The clients; without a source, clients are not allowed.", "no client"),
    "sources[].kind": Meaning("The kind of the identity."),
    "sources[].name": Meaning("The name of the ServiceAccount.", form=NAME),
    "sources[].namespace": Meaning("The namespace of the ServiceAccount.", "the object's namespace", LABEL),
}


def _rules(name: str) -> Meanings:
    return {
        name: Meaning("The allowed routes; without a rule, requests are not allowed.", "no requests"),
        f"{name}[].kind": Meaning("The kind of the routes; sidecars do not carry UDP.", form=ROUTE_KIND),
        f"{name}[].name": Meaning("The name of the routes, in the object's namespace.", form=NAME),
        f"{name}[].matches": Meaning(
            "The names of matches in an HTTPRouteGroup; a TCPRoute does not have named matches.",
            "all matches",
        ),
    }


_HTTP_MATCHES: Final[Meanings] = {
    "matches": Meaning("The matches for requests; each name only once."),
    "matches[].name": Meaning("The name of the match, to which a TrafficTarget refers."),
    "matches[].pathRegex": Meaning("A regular expression (RE2) for the whole path.", "any path"),
    "matches[].methods": Meaning("The methods; `*` means all methods.", "every method", METHOD),
    "matches[].headers": Meaning(
        "Regular expressions for header values by header name, as a mapping or a list of "
        "mappings; all must match.",
        "any headers",
    ),
}

TRAFFIC_TARGET: Final[Meanings] = {
    **_SPEC,
    **under("spec", {**_DESTINATION, **_rules("rules"), **_SOURCES}),
    **_DESTINATION,
    **_rules("specs"),
    **_SOURCES,
}
HTTP_ROUTE_GROUP: Final[Meanings] = {**_SPEC, **under("spec", _HTTP_MATCHES), **_HTTP_MATCHES}
TCP_ROUTE: Final[Meanings] = {
    **_SPEC,
    "spec.matches": Meaning("The matched connections.", "all"),
    "spec.matches.ports": Meaning("The matched ports.", "every port"),
}
TRAFFIC_SPLIT: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning(
        "The age; of several splits of one service, splits with matches have precedence, then the oldest."
    ),
    **_SPEC,
    "spec.service": Meaning(
        "The service with the requests to split, in the object's namespace.", form=SERVICE
    ),
    "spec.backends": Meaning("The services that receive the requests, each only once."),
    "spec.backends[].service": Meaning("The service, in the object's namespace.", form=SERVICE),
    "spec.backends[].weight": Meaning(
        "The share of requests, relative to the other backends; 0 means no requests. In "
        "v1alpha1 a quantity, for example `500m`.",
        raw=QUANTITY,
    ),
    "spec.matches": Meaning("Only requests that match these are split.", "all requests"),
    "spec.matches[].apiGroup": Meaning("The API group."),
    "spec.matches[].kind": Meaning("The kind."),
    "spec.matches[].name": Meaning("The name of the HTTPRouteGroup, in the object's namespace.", form=NAME),
}
