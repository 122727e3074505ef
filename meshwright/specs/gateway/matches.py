"""Matches of HTTPRoutes and GRPCRoutes.

An invalid regular expression drops the rule and not the route, because the API server accepts any text.
"""

import re
from typing import Final

from meshwright.mesh.matching import Exact, FieldMatch, GrpcMethod, Prefix, Regex, RequestMatch
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, duplicates
from meshwright.specs.gateway.forms import (
    FIELD_NAME,
    HEADER_VALUE,
    PARAMETER_VALUE,
    PATH_TEXT,
    TextForm,
    choice,
    limited,
    optional,
    optional_choice,
    required,
)
from meshwright.specs.smi.routes import METHODS

MOST_MATCHES: Final = 64
_MOST_FIELDS: Final = 16
DEFAULT_MATCHES: Final = (RequestMatch(path=Prefix("/")),)
"""Matches of a rule of an HTTPRoute without matches."""

_EXACT: Final = "Exact"
_REGEX: Final = "RegularExpression"
_PREFIX: Final = "PathPrefix"

_PATH: Final = re.compile(r"(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})+")
_ESCAPE: Final = re.compile(r"%[0-9a-fA-F]{2}")
_UNRESERVED: Final = re.compile(r"[-A-Za-z0-9._~]")  # RFC 3986, section 2.3
_UNCLEAR: Final = ("//", "/./", "/../", "%2f", "%2F")
_UNCLEAR_END: Final = ("/..", "/.")
PATH_RULE: Final = (
    "must be a path that begins with / and has only characters that a path may have, without "
    f"{', '.join(_UNCLEAR)}, and without /. or /.. at the end"
)
_SERVICE: Final = TextForm(
    "must be the full name of a gRPC service, for example shop.Cart",
    re.compile(r"\.?[a-z_][a-z_0-9]*(\.[a-z_][a-z_0-9]*)*", re.IGNORECASE | re.ASCII),
    1024,
)
_METHOD: Final = TextForm(
    "must be the name of a gRPC method, for example Add", re.compile(r"[A-Za-z_][A-Za-z_0-9]*"), 1024
)
_ANY_TEXT: Final = TextForm("must be text of at most 1024 characters", PATH_TEXT.pattern, 1024)


def http_matches(rule: Fields) -> tuple[RequestMatch, ...]:
    """Read `matches` of a rule of an HTTPRoute; without a match the rule is for all requests."""
    matches = tuple(_http_match(section) for section in limited(rule, "matches", MOST_MATCHES))
    return matches or DEFAULT_MATCHES


def grpc_matches(rule: Fields) -> tuple[RequestMatch, ...]:
    """Read `matches` of a rule of a GRPCRoute; without a match the rule is for all gRPC calls."""
    matches = tuple(_grpc_match(section) for section in limited(rule, "matches", MOST_MATCHES))
    return matches or (RequestMatch(grpc=True),)


def _http_match(fields: Fields) -> RequestMatch:
    method = optional_choice(fields, "method", METHODS)
    match = RequestMatch(
        path=_path(fields.section("path")),
        methods=(method,) if method else (),
        headers=_headers(fields),
        parameters=_values(fields, "queryParams", PARAMETER_VALUE),
    )
    fields.close()
    return match


def _grpc_match(fields: Fields) -> RequestMatch:
    method = fields.section("method")
    path = _grpc_method(method) if fields.has("method") else None
    match = RequestMatch(path=path, headers=_headers(fields), grpc=True)
    fields.close()
    return match


def _path(fields: Fields) -> Exact | Prefix | Regex:
    form = choice(fields, "type", (_EXACT, _PREFIX, _REGEX), _PREFIX)
    text = optional(fields, "value", PATH_TEXT)
    fields.close()
    path = "/" if text is None else text
    if form == _REGEX:
        return _regex(fields, "value", path)
    if text is not None and not _is_clear(path):
        fields.wrong("value", PATH_RULE)
    path = _ESCAPE.sub(_unescaped, path)
    # The API does not distinguish `/books/` from `/books` as a prefix, and Envoy refuses the first.
    return Exact(path) if form == _EXACT else Prefix(path.rstrip("/") or "/")


def _unescaped(escape: re.Match[str]) -> str:
    """Return a character that needs no escape as itself: sidecars pass on requests in this form."""
    character = chr(int(escape[0][1:], 16))
    return character if _UNRESERVED.fullmatch(character) else escape[0]


def _is_clear(path: str) -> bool:
    return (
        path.startswith("/")
        and not any(part in path for part in _UNCLEAR)
        and not path.endswith(_UNCLEAR_END)
        and _PATH.fullmatch(path) is not None
    )


def _grpc_method(fields: Fields) -> GrpcMethod:
    is_regex = choice(fields, "type", (_EXACT, _REGEX), _EXACT) == _REGEX
    service = optional(fields, "service", _ANY_TEXT if is_regex else _SERVICE)
    method = optional(fields, "method", _ANY_TEXT if is_regex else _METHOD)
    fields.close()
    if service is None and method is None:
        fields.notes.refuse(Code.MISSING, fields.path, "must have a service, a method or both")
    if is_regex:
        for name, regex in (("service", service), ("method", method)):
            if regex is not None:
                _regex(fields, name, regex)
    return GrpcMethod(service, method, is_regex)


def _headers(fields: Fields) -> tuple[FieldMatch, ...]:
    """Return matches of headers by name in lower case; of equal names the first counts."""
    by_name: dict[str, FieldMatch] = {}
    for index, match in enumerate(_values(fields, "headers", HEADER_VALUE, in_order=True)):
        name = match.name.lower()
        if name in by_name:
            fields.notes.warn(
                Code.DUPLICATE,
                f"{fields.at('headers')}[{index}].name",
                "names the same header as an earlier match, so only the earlier match counts",
                match.name,
            )
        by_name.setdefault(name, FieldMatch(name, match.value))
    return tuple(sorted(by_name.values(), key=lambda match: match.name))


def _values(fields: Fields, name: str, form: TextForm, *, in_order: bool = False) -> tuple[FieldMatch, ...]:
    sections = limited(fields, name, _MOST_FIELDS)
    matches = [_value(section, form) for section in sections]
    for index in duplicates([match.name for match in matches]):
        sections[index].wrong("name", "must differ from the names before", Code.DUPLICATE)
    return tuple(matches if in_order else sorted(matches, key=lambda match: match.name))


def _value(fields: Fields, form: TextForm) -> FieldMatch:
    is_regex = choice(fields, "type", (_EXACT, _REGEX), _EXACT) == _REGEX
    name, value = required(fields, "name", FIELD_NAME), required(fields, "value", form)
    fields.close()
    return FieldMatch(name, _regex(fields, "value", value) if is_regex else Exact(value))


def _regex(fields: Fields, name: str, regex: str) -> Regex:
    fault = fields.notes.expressions.fault(regex)
    if fault:
        fields.notes.drop(Code.BAD_REGEX, fields.at(name), fault, regex)
    return Regex(regex)
