"""What resource types are called in labels, logs and pages: words of a closed set, whatever a client says."""

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
    """Return the word of a type URL, `other` for one that no driver of ours serves."""
    return _SHORT.get(type_url.rpartition(".")[2], _OTHER)


def type_word(type_url: str) -> str:
    """Return what a type is called on a page: its short word, or else the type URL itself."""
    word = short_type(type_url)
    return type_url if word == _OTHER else word
