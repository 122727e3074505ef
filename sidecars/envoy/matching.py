"""What requests are told apart by, in Envoy's words: for routes and for access rules alike."""

import re

from mesh.policy import HTTPMatch
from protos.envoy.config.route.v3 import route_components_pb2
from protos.envoy.type.matcher.v3 import regex_pb2, string_pb2


def header_name(name: str) -> str:
    """Return the name by which Envoy knows a header: lower case, `host` being `:authority`."""
    return ":authority" if name.lower() == "host" else name.lower()


def full_match(regex: str) -> string_pb2.StringMatcher:
    """Match a value that fits an RE2 expression in full."""
    return string_pb2.StringMatcher(safe_regex=regex_pb2.RegexMatcher(regex=regex))


def path_matcher(regex: str) -> route_components_pb2.HeaderMatcher:
    """Match a path without its query that fits in full: beside a route's own expression, in the header.

    A path has neither `?` nor, once Envoy has made it what it is to be, `#`.
    """
    whole = full_match(f"(?:{regex})(?:[?](?s:.*))?")
    return route_components_pb2.HeaderMatcher(name=":path", string_match=whole)


def one_of(words: tuple[str, ...]) -> string_pb2.StringMatcher:
    """Match one of some words, none of them taken for an expression."""
    if len(words) == 1:
        return string_pb2.StringMatcher(exact=words[0])
    return full_match("|".join(re.escape(word) for word in sorted(words)))


def header_matchers(match: HTTPMatch) -> list[route_components_pb2.HeaderMatcher]:
    """Return a match's method and headers; all must fit. A repeated header fits if one value does."""
    found = [(header_name(each.name), full_match(each.regex)) for each in match.headers]
    if match.methods:
        found.insert(0, (":method", one_of(match.methods)))
    return [route_components_pb2.HeaderMatcher(name=name, string_match=matcher) for name, matcher in found]
