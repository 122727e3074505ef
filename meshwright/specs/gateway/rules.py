"""Rules of each kind of route: what they match, change and send to which backends."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from meshwright.mesh.gateway.filters import Filters, PathForm
from meshwright.mesh.gateway.rules import Backend, Rule, RuleRetry, Timeouts
from meshwright.mesh.matching import Prefix, RequestMatch
from meshwright.mesh.names import Namespace
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, duplicates
from meshwright.specs.gateway.filters import GRPC_FILTERS, HTTP_FILTERS, REDIRECT, filters_of
from meshwright.specs.gateway.forms import DURATION, SECTION, attempts_of, limited, optional
from meshwright.specs.gateway.matches import grpc_matches, http_matches
from meshwright.specs.gateway.references import backend_object
from meshwright.specs.values.durations import parse_duration

_MOST_BACKENDS: Final = 16
_MOST_WEIGHT: Final = 1_000_000
_MOST_ATTEMPTS: Final = 1000
"""Maximum number of retries of a request; the API server has no limit."""

_SHORTEST_BACKOFF: Final = timedelta(milliseconds=1)
_LONGEST_BACKOFF: Final = timedelta(days=1)
_NO_SESSIONS: Final = (
    "is experimental and not supported, so the rule has no session persistence; a UpstreamPolicy can keep a "
    "client's requests at one endpoint with spec.loadBalancing.hash"
)
_ONE_PREFIX: Final = "ReplacePrefixMatch needs a rule with exactly one match, of type PathPrefix"


def http_rule(fields: Fields, namespace: Namespace) -> Rule:
    """Read a rule of an HTTPRoute."""
    matches = http_matches(fields)
    filters = filters_of(fields, HTTP_FILTERS, namespace)
    backends = tuple(_backend(section, namespace, HTTP_FILTERS) for section in _backends(fields))
    if filters.redirect is not None and backends:
        fields.wrong("backendRefs", f"must be absent beside a filter of type {REDIRECT}")
    _check_prefixes(fields, matches, filters, backends)
    rule = Rule(
        matches, filters, backends, _timeouts(fields.section("timeouts")), _retry(fields), _name(fields)
    )
    _warn_of_sessions(fields)
    return rule


def grpc_rule(fields: Fields, namespace: Namespace) -> Rule:
    """Read a rule of a GRPCRoute."""
    rule = Rule(
        matches=grpc_matches(fields),
        filters=filters_of(fields, GRPC_FILTERS, namespace),
        backends=tuple(_backend(section, namespace, GRPC_FILTERS) for section in _backends(fields)),
        name=_name(fields),
    )
    _warn_of_sessions(fields)
    return rule


def connection_rule(fields: Fields, namespace: Namespace) -> Rule:
    """Read a rule of a TLSRoute or TCPRoute, which has only backends."""
    sections = _backends(fields, least=1)
    return Rule(backends=tuple(_backend(item, namespace) for item in sections), name=_name(fields))


def _name(fields: Fields) -> str:
    return optional(fields, "name", SECTION) or ""


def _backends(fields: Fields, least: int = 0) -> tuple[Fields, ...]:
    return limited(fields, "backendRefs", _MOST_BACKENDS, least)


def _backend(fields: Fields, namespace: Namespace, types: Mapping[str, str] | None = None) -> Backend:
    target = backend_object(fields, namespace)
    weight = fields.whole("weight", 0, _MOST_WEIGHT, 1)
    filters = Filters() if types is None else filters_of(fields, types, namespace, of_backend=True)
    fields.close()
    return Backend(target, 1 if weight is None else weight, filters)


def _check_prefixes(
    fields: Fields, matches: tuple[RequestMatch, ...], filters: Filters, backends: tuple[Backend, ...]
) -> None:
    """Check that a prefix is replaced only in a rule with one prefix match.

    The CRDs check the backends only if one of them replaces a prefix, so two such backends drop the rule.
    """
    written = fields.raw("matches")
    if len(matches) == 1 and isinstance(matches[0].path, Prefix) and written != []:
        return
    if _replaces_prefix(filters):
        fields.wrong("filters", _ONE_PREFIX)
    number = sum(_replaces_prefix(backend.filters) for backend in backends)
    if number == 1:
        fields.wrong("backendRefs", _ONE_PREFIX)
    elif number:
        fields.notes.drop(Code.WRONG_VALUE, fields.at("backendRefs"), _ONE_PREFIX)


def _replaces_prefix(filters: Filters) -> bool:
    paths = (change.path for change in (filters.redirect, filters.rewrite) if change is not None)
    return any(path is not None and path.form is PathForm.PREFIX for path in paths)


def _timeouts(fields: Fields) -> Timeouts:
    request, attempt = _duration(fields, "request"), _duration(fields, "backendRequest")
    fields.close()
    if request and attempt is not None and attempt > request:
        fields.wrong("backendRequest", "must not be longer than request")
    return Timeouts(request, attempt)


def _retry(rule: Fields) -> RuleRetry | None:
    fields = rule.section("retry")
    if not rule.has("retry"):
        return None
    attempts, backoff = attempts_of(fields, "attempts"), _duration(fields, "backoff")
    if attempts > _MOST_ATTEMPTS:
        fields.warn("attempts", f"is more than {_MOST_ATTEMPTS} and is read as this number", Code.WRONG_VALUE)
    codes = _codes(fields)
    fields.close()
    if backoff is not None:
        # Envoy refuses a delay of zero, and one whose multiples are longer than it can measure.
        backoff = min(max(backoff, _SHORTEST_BACKOFF), _LONGEST_BACKOFF)
    return RuleRetry(min(attempts, _MOST_ATTEMPTS), codes, backoff)


def _codes(fields: Fields) -> tuple[int, ...]:
    rule, codes = "must be an HTTP status from 400 to 599", []
    for path, item in fields.items("codes"):
        if isinstance(item, bool) or not isinstance(item, int):
            fields.notes.refuse(Code.WRONG_TYPE, path, rule, item)
        elif not 400 <= item <= 599:
            fields.notes.refuse(Code.WRONG_VALUE, path, rule, item)
        else:
            codes.append(item)
    for index in duplicates(codes):
        fields.notes.refuse(Code.DUPLICATE, fields.at("codes"), "must have each status once", codes[index])
    return tuple(sorted(set(codes)))


def _duration(fields: Fields, name: str) -> timedelta | None:
    text = optional(fields, name, DURATION)
    return None if text is None else parse_duration(text)


def _warn_of_sessions(fields: Fields) -> None:
    if fields.has("sessionPersistence"):
        fields.notes.warn(Code.FIELDS_NOT_USED, fields.at("sessionPersistence"), _NO_SESSIONS)
    fields.accept("sessionPersistence")
