"""Short words for resource types in labels, logs and pages: a closed set, whatever a client sends."""

from typing import Final

_OTHER: Final = "other"
_SHORT: Final = {
    "Cluster": "cluster",
    "ClusterLoadAssignment": "endpoint",
    "Secret": "secret",
    "Listener": "listener",
    "RouteConfiguration": "route",
    "Document": "document",
    "Credentials": "credentials",
}


def short_type(type_url: str) -> str:
    """Return the short word for a resource type, such as `cluster`; `other` for an unknown type."""
    return _SHORT.get(type_url.rpartition(".")[2], _OTHER)


def type_word(type_url: str) -> str:
    """Return the name of a type for a page: its short word, or the type URL if there is none."""
    word = short_type(type_url)
    return type_url if word == _OTHER else word
