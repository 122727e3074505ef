"""Matches of requests as Envoy messages, shared by routes and access rules."""

import re

from meshwright.mesh.matching import Exact, FieldMatch, GrpcMethod, Prefix, Regex, RequestMatch
from protos.envoy.config.route.v3 import route_components_pb2
from protos.envoy.type.matcher.v3 import regex_pb2, string_pb2


def header_name(name: str) -> str:
    """Return Envoy's name of a header: lower case, and `:authority` for `host`."""
    return ":authority" if name.lower() == "host" else name.lower()


def full_match(regex: str) -> string_pb2.StringMatcher:
    """Return a matcher for texts that an RE2 expression matches as a whole."""
    return string_pb2.StringMatcher(safe_regex=regex_pb2.RegexMatcher(regex=regex))


def path_regex(path: Exact | Prefix | Regex | GrpcMethod) -> str:
    """Return an expression for a path without the query, which must match in full."""
    match path:
        case Exact(text):
            return re.escape(text)
        case Prefix("/"):
            return ".*"
        case Prefix(text):
            return f"{re.escape(text)}(?:/.*)?"
        case Regex(regex):
            return regex
        case GrpcMethod(service, method, is_regex):
            words = (service, method)
            parts = ("[^/]+" if word is None else word if is_regex else re.escape(word) for word in words)
            return "".join(f"/(?:{part})" for part in parts)


def path_matcher(regex: str) -> route_components_pb2.HeaderMatcher:
    """Match a path (without the query) as a whole, in the `:path` header.

    Used beside a route's own expression.

    A path never contains `?` or, after Envoy's normalisation, `#`.
    """
    whole = full_match(f"(?:{_within(regex)})(?:[?](?s:.*))?")
    return route_components_pb2.HeaderMatcher(name=":path", string_match=whole)


def _within(regex: str) -> str:
    r"""Return an expression in a form to which another expression can be appended.

    For example, `/api/.*$` becomes `/api/.*`.

    An open literal (`\Q`) is closed. A final end anchor (`$`, `\z`) is removed: the anchor has no effect in a
    full match, and would be in the middle.
    """
    literal, last, at = False, 0, 0
    while at < len(regex):
        pair, last = regex[at : at + 2], 0
        if literal:
            literal = pair != r"\E"
            at += 1 if literal else 2
        elif regex[at] == "\\":
            literal, last = pair == r"\Q", 2 if pair == r"\z" else 0
            at += 2
        else:
            last = 1 if regex[at] == "$" else 0
            at += 1
    return f"{regex}\\E" if literal else regex[: len(regex) - last]


def _header(wanted: FieldMatch) -> string_pb2.StringMatcher:
    """Match a header's value as a whole. A host matches in any case, with any port or a final dot.

    Clients send the host as in their URL, with the port unless the port is the default (RFC 9110, section
    7.2).
    """
    value = wanted.value
    if header_name(wanted.name) == ":authority":
        regex = re.escape(value.text) if isinstance(value, Exact) else _within(value.regex)
        return full_match(f"(?i:(?:{regex})[.]?(?::[0-9]+)?)")
    return _text(value)


def _text(value: Exact | Regex) -> string_pb2.StringMatcher:
    return string_pb2.StringMatcher(exact=value.text) if isinstance(value, Exact) else full_match(value.regex)


def parameter_matcher(wanted: FieldMatch) -> route_components_pb2.QueryParameterMatcher:
    """Match a query parameter, of which the first value counts; Envoy compares it without decoding."""
    return route_components_pb2.QueryParameterMatcher(name=wanted.name, string_match=_text(wanted.value))


def one_of(words: tuple[str, ...]) -> string_pb2.StringMatcher:
    """Return a matcher for texts that are literally one of several words."""
    if len(words) == 1:
        return string_pb2.StringMatcher(exact=words[0])
    return full_match("|".join(re.escape(word) for word in sorted(words)))


def header_matchers(match: RequestMatch) -> list[route_components_pb2.HeaderMatcher]:
    """Return the matchers for method and headers, which must all match.

    A repeated header needs one matching value.
    """
    result = [(header_name(header.name), _header(header)) for header in match.headers]
    if match.methods:
        result.insert(0, (":method", one_of(match.methods)))
    return [route_components_pb2.HeaderMatcher(name=name, string_match=matcher) for name, matcher in result]
