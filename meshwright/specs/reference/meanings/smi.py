"""SMI's kinds."""

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

_SPEC: Final[Meanings] = {"spec": Meaning("What is said.")}
_DESTINATION: Final[Meanings] = {
    "destination": Meaning("Who may be called."),
    "destination.kind": Meaning("Of identities there is one kind."),
    "destination.name": Meaning("The ServiceAccount's name.", form=NAME),
    "destination.namespace": Meaning("Must be the object's own.", "the object's", LABEL),
    "destination.port": Meaning("Only this port may be called.", "every port", DIGITS),
}
_SOURCES: Final[Meanings] = {
    "sources": Meaning("Who may call; none is nobody.", "nobody"),
    "sources[].kind": Meaning("Of identities there is one kind."),
    "sources[].name": Meaning("The ServiceAccount's name.", form=NAME),
    "sources[].namespace": Meaning("Its namespace.", "the object's", LABEL),
}


def _rules(name: str) -> Meanings:
    return {
        name: Meaning("What may be called; without one nothing.", "nothing"),
        f"{name}[].kind": Meaning("What kind of routes; sidecars carry no UDP.", form=ROUTE_KIND),
        f"{name}[].name": Meaning("The routes' name, in the object's namespace.", form=NAME),
        f"{name}[].matches": Meaning(
            "Names of an HTTPRouteGroup's matches; a TCPRoute has none.", "all matches"
        ),
    }


_HTTP_MATCHES: Final[Meanings] = {
    "matches": Meaning("Kinds of requests, by name; no two have one name."),
    "matches[].name": Meaning("The name by which a TrafficTarget selects it."),
    "matches[].pathRegex": Meaning("A regular expression (RE2) that the whole path matches.", "any path"),
    "matches[].methods": Meaning("The methods; `*` is all of them.", "every method", METHOD),
    "matches[].headers": Meaning(
        "Regular expressions that the values of headers match, by name, as a mapping or a list of mappings; "
        "all must match.",
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
    "spec.matches": Meaning("Which connections are meant.", "all"),
    "spec.matches.ports": Meaning("The ports that are meant.", "every port"),
}
TRAFFIC_SPLIT: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning(
        "Of several splits of one service those with matches come first, then the oldest."
    ),
    **_SPEC,
    "spec.service": Meaning("The service whose calls are split, of the object's namespace.", form=SERVICE),
    "spec.backends": Meaning("To whom, each once."),
    "spec.backends[].service": Meaning("A service of the object's namespace.", form=SERVICE),
    "spec.backends[].weight": Meaning(
        "Its share of the calls, relative to the others'; 0 is none. In v1alpha1 a quantity such as `500m`.",
        raw=QUANTITY,
    ),
    "spec.matches": Meaning("Only requests that these admit are split.", "all requests"),
    "spec.matches[].apiGroup": Meaning("Of groups there is one."),
    "spec.matches[].kind": Meaning("Of kinds there is one."),
    "spec.matches[].name": Meaning("The HTTPRouteGroup's name, in the object's namespace.", form=NAME),
}
