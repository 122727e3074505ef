"""Filters of rules and backends.

A filter that Meshwright does not carry out is never left out silently: its name goes to `Filters.unknown`,
and requests of its rule or backend are answered with an error.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from meshwright.mesh.gateway.filters import Filters, Mirror, NewPath, PathForm, Redirect, Rewrite
from meshwright.mesh.names import Namespace
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, one_of
from meshwright.specs.gateway.cors import cors
from meshwright.specs.gateway.forms import (
    GROUP,
    KIND,
    NAME,
    PATH_TEXT,
    PRECISE_HOSTNAME,
    at_least,
    choice,
    limited,
    missing,
    optional,
    optional_choice,
    required,
)
from meshwright.specs.gateway.header_changes import request_changes, response_changes
from meshwright.specs.gateway.references import backend_object

REDIRECT: Final = "RequestRedirect"
REWRITE: Final = "URLRewrite"
REQUEST_HEADERS: Final = "RequestHeaderModifier"
RESPONSE_HEADERS: Final = "ResponseHeaderModifier"
MIRROR: Final = "RequestMirror"
CORS: Final = "CORS"
EXTENSION: Final = "ExtensionRef"
_EXTERNAL_AUTH: Final = "ExternalAuth"
_UNSUPPORTED_ANYWHERE: Final = (EXTENSION, _EXTERNAL_AUTH)
_UNSUPPORTED_IN_BACKENDS: Final = (REDIRECT, CORS)

HTTP_FILTERS: Final[Mapping[str, str]] = {
    REQUEST_HEADERS: "requestHeaderModifier",
    RESPONSE_HEADERS: "responseHeaderModifier",
    MIRROR: "requestMirror",
    REDIRECT: "requestRedirect",
    REWRITE: "urlRewrite",
    CORS: "cors",
    EXTENSION: "extensionRef",
    _EXTERNAL_AUTH: "externalAuth",
}
"""Types of filters of HTTPRoutes, each with the field for its content."""

GRPC_FILTERS: Final[Mapping[str, str]] = {
    name: HTTP_FILTERS[name] for name in (REQUEST_HEADERS, RESPONSE_HEADERS, MIRROR, EXTENSION)
}
"""Types of filters of GRPCRoutes, each with the field for its content."""

_ONCE: Final = (REQUEST_HEADERS, RESPONSE_HEADERS, REDIRECT, REWRITE, CORS)
_MOST_FILTERS: Final = 16
_STATUSES: Final = (301, 302, 303, 307, 308)
_STATUS_RULE: Final = "must be 301, 302, 303, 307 or 308"
_NEW_PATH: Final = re.compile(r"(/[!-~]*)?")
_NEW_PATH_RULE: Final = "must be empty or begin with /, of printable ASCII characters without spaces, ? and #"
_UNSUPPORTED: Final = "Meshwright does not support this filter here; requests are answered with an error"


def filters_of(
    fields: Fields, types: Mapping[str, str], namespace: Namespace, *, of_backend: bool = False
) -> Filters:
    """Read `filters` of a rule, or of one of its backends (`of_backend`), with these `types`."""
    sections = limited(fields, "filters", _MOST_FILTERS)
    names = [_type(section, types) for section in sections]
    filters = Filters()
    for section, name in zip(sections, names, strict=True):
        if name in _UNSUPPORTED_ANYWHERE or (of_backend and name in _UNSUPPORTED_IN_BACKENDS):
            filters = _with_unknown(filters, name, section, types[name])
        elif name and section.has(types[name]):
            filters = _with_filter(filters, name, section.section(types[name]), namespace)
        section.close()
    _check_counts(fields, names)
    return filters


def _type(fields: Fields, types: Mapping[str, str]) -> str:
    """Return the type of a filter, empty after an error; content of another type is an error."""
    fields.accept(*types.values())
    if not fields.has("type"):
        missing(fields, "type", one_of(types))
        fields.accept("type")
        return ""
    name = choice(fields, "type", types, "")
    for other, field in types.items():
        if other != name and fields.has(field):
            fields.wrong(field, f"must be absent, because only a filter of type {other} has this field")
        elif other == name and not fields.has(field):
            fields.wrong(field, f"must be present, because the type is {name}")
    return name


def _check_counts(fields: Fields, names: list[str]) -> None:
    counts = Counter(names)
    for name in _ONCE:
        if counts[name] > 1:
            fields.wrong("filters", f"must have at most one filter of type {name}", Code.DUPLICATE)
    if counts[REDIRECT] and counts[REWRITE]:
        fields.wrong("filters", f"must not have both {REDIRECT} and {REWRITE}; keep one of the two")


def _with_filter(filters: Filters, name: str, content: Fields, namespace: Namespace) -> Filters:
    match name:
        case "RequestHeaderModifier":
            changes, host = request_changes(content)
            if host is not None and (filters.rewrite is None or filters.rewrite.host is None):
                filters = replace(filters, rewrite=replace(filters.rewrite or Rewrite(), host=host))
            return replace(filters, request_headers=changes)
        case "ResponseHeaderModifier":
            return replace(filters, response_headers=response_changes(content))
        case "RequestMirror":
            return replace(filters, mirrors=(*filters.mirrors, _mirror(content, namespace)))
        case "URLRewrite":
            return replace(filters, rewrite=_rewrite(content, filters.rewrite))
        case "RequestRedirect":
            return replace(filters, redirect=_redirect(content))
        case _:
            return replace(filters, cors=cors(content))


def _with_unknown(filters: Filters, name: str, section: Fields, field: str) -> Filters:
    """Check the content of an unsupported filter, and add the filter's name to the unknown ones."""
    # Fields of its own, because the reference has no meanings for fields without effect.
    mapping = section.raw(field)
    content = Fields(mapping if isinstance(mapping, Mapping) else {}, section.at(field), section.notes)
    if name == REDIRECT:
        # The redirect stays visible, because its path has a rule that looks at the route's matches.
        filters = replace(filters, redirect=_redirect(content))
    elif name == CORS:
        cors(content)
    elif name == EXTENSION:
        required(content, "group", GROUP)
        required(content, "kind", KIND)
        required(content, "name", NAME)
        content.close()
    section.notes.warn(Code.FILTER_NOT_SUPPORTED, content.path, _UNSUPPORTED)
    return replace(filters, unknown=(*filters.unknown, name))


def _mirror(fields: Fields, namespace: Namespace) -> Mirror:
    target = fields.section("backendRef", required=True)
    backend = backend_object(target, namespace)
    target.close()
    percent = fields.whole("percent", 0, 100)
    fraction = fields.section("fraction")
    numerator, denominator = _fraction(fraction) if fields.has("fraction") else (None, 100)
    if percent is not None and numerator is not None:
        fields.wrong("fraction", "must be absent beside percent; keep one of the two")
    fields.close()
    share = numerator if numerator is not None else percent
    return Mirror(backend, 100 if share is None else share, denominator)


def _fraction(fields: Fields) -> tuple[int | None, int]:
    if not fields.has("numerator"):
        missing(fields, "numerator", "must be a whole number from 0")
    numerator, denominator = at_least(fields, "numerator", 0), at_least(fields, "denominator", 1, 100) or 100
    if numerator is not None and numerator > denominator:
        fields.wrong("numerator", f"must be at most the denominator, {denominator}")
    fields.close()
    return numerator, denominator


def _redirect(fields: Fields) -> Redirect:
    status = fields.whole("statusCode", _STATUSES[0], _STATUSES[-1], 302) or 302
    if status not in _STATUSES:
        fields.wrong("statusCode", _STATUS_RULE)
    scheme = optional_choice(fields, "scheme", ("http", "https"))
    redirect = Redirect(
        scheme, optional(fields, "hostname", PRECISE_HOSTNAME), _new_path(fields), fields.port("port"), status
    )
    fields.close()
    return redirect


def _rewrite(fields: Fields, before: Rewrite | None) -> Rewrite:
    """Read a URLRewrite; its hostname precedes a Host header set `before`."""
    host = optional(fields, "hostname", PRECISE_HOSTNAME)
    rewrite = Rewrite(host if host is not None or before is None else before.host, _new_path(fields))
    fields.close()
    return rewrite


_PATH_FORMS: Final = tuple(map(str, PathForm))
_PATH_FIELDS: Final = {PathForm.FULL: "replaceFullPath", PathForm.PREFIX: "replacePrefixMatch"}


def _new_path(fields: Fields) -> NewPath | None:
    path = fields.section("path")
    if not fields.has("path"):
        return None
    if not path.has("type"):
        missing(path, "type", one_of(_PATH_FORMS))
    form = PathForm(choice(path, "type", _PATH_FORMS, PathForm.FULL))
    texts = {item: optional(path, name, PATH_TEXT) for item, name in _PATH_FIELDS.items()}
    for item, name in _PATH_FIELDS.items():
        if item == form and texts[item] is None:
            path.wrong(name, f"must be present, because the type is {form}")
        elif item != form and texts[item] is not None:
            path.wrong(name, f"must be absent, because the type is {form}")
    path.close()
    text = texts[form] or ""
    if _NEW_PATH.fullmatch(text) is None or "?" in text or "#" in text:
        fields.notes.drop(Code.WRONG_VALUE, path.at(_PATH_FIELDS[form]), _NEW_PATH_RULE, text)
    return NewPath(form, text)
