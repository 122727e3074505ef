"""Matchers for the nodes in a status request (envoy.type.matcher.v3.NodeMatcher)."""

from collections.abc import Callable, Iterable

import re2

from protos.envoy.type.matcher.v3 import node_pb2, string_pb2
from xds.protocol.wire import Node, WireError

Matches = Callable[[str], bool]


def node_predicate(matchers: Iterable[node_pb2.NodeMatcher]) -> Callable[[Node | None], bool]:
    """Return a predicate that accepts a node if at least one matcher matches it.

    Without matchers every node is accepted. A missing node counts as a node with empty fields. Raises
    WireError for an unsupported matcher.
    """
    each_of = [_id_matches(matcher) for matcher in matchers]
    return lambda node: not each_of or any(item(node.id if node else "") for item in each_of)


def _id_matches(matcher: node_pb2.NodeMatcher) -> Matches:
    if matcher.node_metadatas:
        raise WireError(
            "node_matchers: node_metadatas cannot be matched, because node metadata is not kept: use node_id"
        )
    return _text_matches(matcher.node_id) if matcher.HasField("node_id") else _any


def _any(text: str) -> bool:
    del text
    return True


def _text_matches(matcher: string_pb2.StringMatcher) -> Matches:
    """Compile a StringMatcher.

    `ignore_case` does not apply to a regular expression, which must match the whole text.
    """
    pattern = matcher.WhichOneof("match_pattern")
    wanted = matcher.exact or matcher.prefix or matcher.suffix or matcher.contains
    if matcher.ignore_case:
        wanted = wanted.lower()

    def cased(text: str) -> str:
        return text.lower() if matcher.ignore_case else text

    match pattern:
        case "exact":
            return lambda text: cased(text) == wanted
        case "prefix":
            return lambda text: cased(text).startswith(wanted)
        case "suffix":
            return lambda text: cased(text).endswith(wanted)
        case "contains":
            return lambda text: wanted in cased(text)
        case "safe_regex":
            return _expression_matches(matcher.safe_regex.regex)
        case _:
            message = "node_matchers: node_id must have one of exact, prefix, suffix, contains and safe_regex"
            raise WireError(message)


def _expression_matches(regex: str) -> Matches:
    options = re2.Options()
    options.log_errors = False
    try:
        expression = re2.compile(regex, options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace")
        raise WireError(f"node_matchers: safe_regex is not an RE2 regular expression: {reason}") from error
    return lambda text: expression.fullmatch(text) is not None
