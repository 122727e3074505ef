"""Global rate limits of OSM's UpstreamTrafficSetting: the rate limit service and its descriptors.

Values have the bounds of Envoy: keys, values and domains must not be empty, and a header has exactly one
criterion. The host of the service may be a name or an IP address.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.policies.rate_services import (
    CountedConnections,
    CountedRequests,
    Descriptor,
    Entry,
    Exact,
    GenericKey,
    HeaderCriterion,
    HeaderPresence,
    HeaderValue,
    HeaderValueMatch,
    Prefix,
    RateLimitService,
    Regex,
    RemoteAddress,
    RequestHeader,
    Substring,
    Suffix,
)
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields
from meshwright.specs.values.durations import wait
from meshwright.specs.values.headers import is_name
from meshwright.specs.values.rates import status
from meshwright.specs.values.references import host

TEXT_RULE: Final = "must be printable text of at most 256 characters"
HEADER_RULE: Final = (
    "must be the name of a header, for example user-agent, or one of :authority, :method, :path"
)
ENTRY_RULE: Final = "must have exactly one of genericKey, remoteAddress, requestHeader, headerValueMatch"
VALUE_RULE: Final = "must have exactly one of exact, prefix, suffix, regex, contains, present"

_TIMEOUT: Final = timedelta(milliseconds=20)
_LONGEST: Final = 256
_PSEUDO: Final = frozenset({":authority", ":method", ":path"})
_ENTRIES: Final = ("genericKey", "remoteAddress", "requestHeader", "headerValueMatch")
_TEXTS: Final[Mapping[str, type[Exact | Prefix | Suffix | Substring | Regex]]] = {
    "exact": Exact,
    "prefix": Prefix,
    "suffix": Suffix,
    "contains": Substring,
    "regex": Regex,
}


def counted_connections(fields: Fields) -> CountedConnections:
    """Read `rateLimit.global.tcp`: the rate limit service, and descriptors for connections."""
    asked = _service(fields)
    result = []
    for item in _some(fields, "descriptors"):
        entries = _some(item, "entries")
        result.append(tuple((_text(entry, "key"), _text(entry, "value")) for entry in entries))
        for entry in entries:
            entry.close()
        item.close()
    fields.close()
    return CountedConnections(asked, tuple(result))


def counted_requests(fields: Fields) -> CountedRequests:
    """Read `rateLimit.global.http`: the rate limit service, and descriptors for requests."""
    result = CountedRequests(
        _service(fields), descriptors(fields), status(fields), fields.flag("enableXRateLimitHeaders")
    )
    fields.close()
    return result


def descriptors(fields: Fields) -> tuple[Descriptor, ...]:
    """Read the descriptors that a proxy sends to the rate limit service for each request."""
    result = []
    for item in _some(fields, "descriptors"):
        result.append(tuple(map(_entry, _some(item, "entries"))))
        item.close()
    return tuple(result)


def _service(fields: Fields) -> RateLimitService:
    where = fields.section("rateLimitService", required=True)
    where.required_text("host")
    server = HostPort(host(where, "host"), where.required_port("port"))
    where.close()
    timeout = wait(fields, "timeout") or _TIMEOUT
    return RateLimitService(
        server, _text(fields, "domain"), timeout, fails_open=fields.flag("failOpen", default=True)
    )


def _some(fields: Fields, name: str) -> tuple[Fields, ...]:
    result = fields.sections(name, required=True)
    if fields.has(name) and not result:
        fields.wrong(name, "must have at least one entry")
    return result


def _text(fields: Fields, name: str, default: str | None = None) -> str:
    if default is None:
        result = fields.required_text(name, TEXT_RULE)
    else:
        result = fields.text(name, default) or default
    if result and not (result.isprintable() and len(result) <= _LONGEST):
        fields.wrong(name, TEXT_RULE)
    return result


def _entry(fields: Fields) -> Entry:
    fields.accept(*_ENTRIES)
    there = [entry for entry in _ENTRIES if fields.has(entry)]
    if len(there) != 1:
        fields.notes.refuse(Code.WRONG_VALUE, fields.path, ENTRY_RULE, ", ".join(there))
    result: Entry = RemoteAddress()
    for item in there:
        # Several are an error already; all of them are read, so that errors within them are reported too.
        result = _read(item, fields.section(item))
    fields.close()
    return result


def _read(kind: str, fields: Fields) -> Entry:
    result: Entry
    match kind:
        case "genericKey":
            result = GenericKey(_text(fields, "key", "generic_key"), _text(fields, "value"))
        case "requestHeader":
            result = RequestHeader(_text(fields, "key"), _header(fields))
        case "headerValueMatch":
            result = HeaderValueMatch(
                _text(fields, "key", "header_match"),
                _text(fields, "value"),
                tuple(map(_criterion, _some(fields, "headers"))),
                expected=fields.flag("expectMatch", default=True),
            )
        case _:
            result = RemoteAddress()
    fields.close()
    return result


def _header(fields: Fields) -> str:
    result = fields.required_text("name", HEADER_RULE)
    if result and result.lower() not in _PSEUDO and not is_name(result):
        fields.wrong("name", HEADER_RULE)
    return result.lower()


def _criterion(fields: Fields) -> HeaderCriterion:
    fields.accept(*_TEXTS, "present")
    there = [item for item in (*_TEXTS, "present") if fields.has(item)]
    if len(there) != 1:
        fields.notes.refuse(Code.WRONG_VALUE, fields.path, VALUE_RULE, ", ".join(there))
    value: HeaderValue = HeaderPresence(fields.optional_flag("present") or False)
    for item in there:
        if item != "present":
            value = _TEXTS[item](_text(fields, item))
    if isinstance(value, Regex) and value.text and (fault := fields.notes.expressions.fault(value.text)):
        fields.wrong("regex", fault, Code.BAD_REGEX)
    criterion = HeaderCriterion(_header(fields), value)
    fields.close()
    return criterion
