"""What requests are told apart by, in Envoy's words: for routes and for access rules alike."""

import re

from meshwright.mesh.policies.smi import HeaderMatch, HTTPMatch
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
    whole = full_match(f"(?:{_within(regex)})(?:[?](?s:.*))?")
    return route_components_pb2.HeaderMatcher(name=":path", string_match=whole)


def _within(regex: str) -> str:
    r"""Return an expression so that others may stand behind it.

    A literal that is open (`\Q`) is ended. The end of all (`$`, `\z`) that stands last is left out: to fit in
    full it says nothing, and it would not be the end any more.
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


def _header(wanted: HeaderMatch) -> string_pb2.StringMatcher:
    """Match the value of a header that fits in full; a host is the same in any case, with any port or a dot.

    Clients write the host as it stands in their URL, and its port where it is not 80 (RFC 9110, section 7.2).
    """
    if header_name(wanted.name) != ":authority":
        return full_match(wanted.regex)
    return full_match(f"(?i:(?:{_within(wanted.regex)})[.]?(?::[0-9]+)?)")


def one_of(words: tuple[str, ...]) -> string_pb2.StringMatcher:
    """Match one of some words, none of them taken for an expression."""
    if len(words) == 1:
        return string_pb2.StringMatcher(exact=words[0])
    return full_match("|".join(re.escape(word) for word in sorted(words)))


def header_matchers(match: HTTPMatch) -> list[route_components_pb2.HeaderMatcher]:
    """Return a match's method and headers; all must fit. A repeated header fits if one value does."""
    found = [(header_name(each.name), _header(each)) for each in match.headers]
    if match.methods:
        found.insert(0, (":method", one_of(match.methods)))
    return [route_components_pb2.HeaderMatcher(name=name, string_match=matcher) for name, matcher in found]
