"""Label values: words of closed sets, whatever a client or a manifest says."""

from typing import Final

_SHORT: Final = {
    "Cluster": "cluster",
    "ClusterLoadAssignment": "endpoint",
    "Secret": "secret",
    "Listener": "listener",
    "RouteConfiguration": "route",
    "Document": "document",
}


def short_type(type_url: str) -> str:
    """Return the label value of a type URL: a word of a closed set, whatever a client sends."""
    return _SHORT.get(type_url.rpartition(".")[2], "other")
