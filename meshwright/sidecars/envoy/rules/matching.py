"""Matches of requests as Envoy messages, shared by routes and access rules."""

import re

from meshwright.mesh.matching import Exact, FieldMatch, GrpcMethod, Prefix, Regex, RequestMatch
from meshwright.sidecars.envoy.rules.inner_expressions import inner_expression
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
            parts = (_word(word, is_regex=is_regex) for word in words)
            return "".join(f"/(?:{part})" for part in parts)


def _word(word: str | None, *, is_regex: bool) -> str:
    """Return an expression for the service or the method in the path of a gRPC call."""
    if word is None:
        return "[^/]+"
    return inner_expression(word) if is_regex else re.escape(word)


def path_matcher(regex: str) -> route_components_pb2.HeaderMatcher:
    """Match a path (without the query) as a whole, in the `:path` header.

    Used beside a route's own expression.

    A path never contains `?` or, after Envoy's normalisation, `#`.
    """
    whole = full_match(f"(?:{inner_expression(regex)})(?:[?](?s:.*))?")
    return route_components_pb2.HeaderMatcher(name=":path", string_match=whole)


def _header(wanted: FieldMatch) -> string_pb2.StringMatcher:
    """Match a header's value as a whole. A host matches in any case, with any port or a final dot.

    Clients send the host as in their URL, with the port unless the port is the default (RFC 9110, section
    7.2).
    """
    value = wanted.value
    if header_name(wanted.name) == ":authority":
        regex = re.escape(value.text) if isinstance(value, Exact) else inner_expression(value.regex)
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
