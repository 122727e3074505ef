"""Entries of a route table in words: the requests, and what happens to them."""

from catalog.policy.values.route_actions import Answer, Forward, Share, WeightedBackend
from catalog.policy.values.route_table import RouteEntry
from meshwright.mesh.gateway.filters import Redirect
from meshwright.mesh.matching import Exact, FieldMatch, GrpcMethod, Prefix, Regex, RequestMatch


def to(entry: RouteEntry) -> str:
    """Return what happens to the requests of an entry, for example `shop/v1 port 80 (weight 1)`."""
    match entry.action:
        case Forward(shares):
            return ", ".join(_share(share, alone=len(shares) == 1) for share in shares)
        case Redirect(status=status):
            return f"redirect with status {status}"
        case Answer(503):
            return "no backend: 503"
        case Answer(status):
            return f"answer {status}"


def _share(share: Share, *, alone: bool) -> str:
    match share:
        case WeightedBackend():
            place = f"{share.upstream} port {share.target_port}"
        case _:
            place = f"answer {share.status}"
    return place if alone else f"{place} (weight {share.weight})"


def requests(match: RequestMatch) -> str:
    """Return the requests of a match in one line, for example `GET /books/... x-user=ann ?page=2`.

    `*` stands for any method or any path, and a path with `/...` for all paths below it.
    """
    words = [",".join(match.methods) or "*", _path(match)]
    words += map(_field, match.headers)
    words += (f"?{_field(parameter)}" for parameter in match.parameters)
    return " ".join(words)


def _path(match: RequestMatch) -> str:
    match match.path:
        case None:
            return "*"
        case Exact(text):
            return text
        case Prefix(path):
            return f"{path.rstrip('/')}/..."
        case Regex(regex):
            return regex
        case GrpcMethod(service, method):
            return f"{service or '*'}/{method or '*'}"


def _field(wanted: FieldMatch) -> str:
    value = wanted.value
    return f"{wanted.name}={value.text if isinstance(value, Exact) else value.regex}"
