"""Filters RequestHeaderModifier and ResponseHeaderModifier.

The API server accepts changes that Envoy refuses or that would break a request, for example a new
Content-Length. They drop the rule. A new Host is another host for the backend, so it becomes a rewrite.
"""

from collections.abc import Sequence
from typing import Final

from meshwright.mesh.policies.routing import HeaderChanges, Headers
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, duplicates
from meshwright.specs.gateway.forms import FIELD_NAME, HEADER_VALUE, limited, required
from meshwright.specs.values.headers import VALUE_RULE, is_name, is_value, may_change

_MOST: Final = 16
_HOST: Final = "host"
_ALSO: Final = frozenset({"x-request-id", "x-forwarded-proto"})
"""Headers that routes of the Gateway API may change beside others.

The API's own examples set a request ID, and users set the scheme for an application behind other proxies.
"""
_OF_ENVOY: Final = "x-envoy-"
CHANGE_RULE: Final = (
    "must be the name of a header that rules may change: not one that frames or identifies a request, such "
    "as connection or x-forwarded-client-cert, and not one that begins with x-envoy- or x-meshwright-"
)


def request_changes(fields: Fields) -> tuple[HeaderChanges, str | None]:
    """Read changes of a request, and the new Host, None if it stays."""
    put = _headers(fields, "set")
    host = next((value for name, value in put if name == _HOST), None)
    return _changes(fields, tuple(pair for pair in put if pair[0] != _HOST)), host


def response_changes(fields: Fields) -> HeaderChanges:
    """Read changes of an answer."""
    return _changes(fields, _headers(fields, "set"), removable=_OF_ENVOY)


def _changes(fields: Fields, put: Headers, *, removable: str | None = None) -> HeaderChanges:
    """Read changes; headers whose names begin with `removable` may be removed too."""
    changes = HeaderChanges(
        tuple(sorted(put)), tuple(sorted(_headers(fields, "add"))), tuple(sorted(_removed(fields)))
    )
    fields.close()
    names = [*(name for name, _ in (*changes.put, *changes.add)), *changes.remove]
    free = {name for name in changes.remove if removable and name.startswith(removable)}
    for name in names:
        if not (may_change(name) or name in _ALSO or name in free):
            fields.notes.drop(Code.WRONG_VALUE, fields.path, CHANGE_RULE, name)
    for index in duplicates(names):
        expected = f"changes the header {names[index]:.60} more than once; keep one of the changes"
        fields.notes.drop(Code.DUPLICATE, fields.path, expected)
    return changes


def _headers(fields: Fields, name: str) -> Headers:
    """Return headers by name in lower case; of equal names the first counts."""
    sections = limited(fields, name, _MOST)
    pairs = [(required(item, "name", FIELD_NAME), required(item, "value", HEADER_VALUE)) for item in sections]
    for section, (_, value) in zip(sections, pairs, strict=True):
        section.close()
        if value and not is_value(value):
            fields.notes.drop(Code.WRONG_VALUE, section.at("value"), VALUE_RULE, value)
    for index in duplicates([header for header, _ in pairs]):
        sections[index].wrong("name", "must differ from the names before", Code.DUPLICATE)
    by_name: dict[str, str] = {}
    for header, value in pairs:
        by_name.setdefault(header.lower(), value)
    return tuple(by_name.items())


def _removed(fields: Fields) -> Sequence[str]:
    items = fields.raw("remove")
    if isinstance(items, list | tuple) and len(items) > _MOST:
        fields.wrong("remove", f"must have at most {_MOST} items")
        return ()
    names = [item for _, item in fields.items("remove") if isinstance(item, str)]
    for path, item in fields.items("remove"):
        if not isinstance(item, str):
            fields.notes.refuse(Code.WRONG_TYPE, path, "must be the name of a header", item)
        elif not is_name(item):
            # Any text may be written here, and a header of this name cannot exist.
            fields.notes.warn(Code.WRONG_VALUE, path, "is not the name of a header and is ignored", item)
    for index in duplicates(names):
        fields.notes.refuse(
            Code.DUPLICATE, f"{fields.at('remove')}[{index}]", "must differ from the names before"
        )
    return [*dict.fromkeys(name.lower() for name in names if is_name(name))]
