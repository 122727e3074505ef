"""HTTP headers in manifests: valid names and values, and the headers that rules may change.

Names are tokens (RFC 9110, section 5.6.2). Values are printable ASCII, because Envoy rejects a configuration
with other characters, or with a value longer than 16 KiB.
"""

import re
from typing import Final

from meshwright.mesh.policies.routing import HeaderChanges, Headers
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, duplicates

NAME: Final = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
VALUE_RULE: Final = "must be the value of a header: one or more printable ASCII characters"
LONGEST: Final = 4096
"""Maximum bytes of a name or a value; Envoy's limit is 16 KiB, with each percent sign counted twice."""

MOST: Final = 100
"""Maximum number of changes of one kind in one place."""

CHANGE_RULE: Final = (
    "must be the name of a header that rules may change: not one that Envoy manages, such as "
    "host, connection or x-request-id, and not one that begins with x-envoy- or x-meshwright-"
)
_NAME: Final = re.compile(NAME)
_VALUE: Final = re.compile(r"[\t\x20-\x7e]+")
_OWN: Final = ("x-envoy-", "x-meshwright-")
_FIXED: Final = frozenset(
    {
        "connection",
        "content-length",
        "host",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-forwarded-client-cert",
        "x-forwarded-proto",
        "x-request-id",
    }
)
"""Headers for the destination, framing or origin of a message, which must not be falsified."""


def is_name(text: str) -> bool:
    """Return whether a text is a valid name of an HTTP header."""
    return _NAME.fullmatch(text) is not None


def is_value(text: str) -> bool:
    """Return whether a text is a valid value of an HTTP header."""
    return _VALUE.fullmatch(text) is not None


def may_change(name: str) -> bool:
    """Return whether rules may change a header; `name` is in lower case."""
    return is_name(name) and len(name) <= LONGEST and name not in _FIXED and not name.startswith(_OWN)


def changes(fields: Fields) -> HeaderChanges:
    """Read `set`, `add` and `remove` of a section, and close it; each header may have only one change."""
    put, add = _headers(fields, "set"), _headers(fields, "add")
    remove = tuple(
        item.lower() for item in fields.texts("remove", CHANGE_RULE, lambda text: may_change(text.lower()))
    )
    for index, name in enumerate(remove):
        if not may_change(name):
            fields.notes.refuse(Code.WRONG_VALUE, f"{fields.at('remove')}[{index}]", CHANGE_RULE, name)
    # All names are in lower case here, because header names are case-insensitive (RFC 9110, section 5.1).
    names = [*(name for name, _ in (*put, *add)), *remove]
    for index in duplicates(names):
        expected = (
            f"changes the header {names[index]:.60} more than once (upper and lower case are the same); "
            "keep one of the changes"
        )
        fields.notes.refuse(Code.DUPLICATE, fields.path, expected)
    fields.close()
    return HeaderChanges(tuple(sorted(put)), tuple(sorted(add)), tuple(sorted(remove)))


def _headers(fields: Fields, name: str) -> Headers:
    sections, result = fields.sections(name), []
    for section in sections:
        header, value = section.required_text("name", CHANGE_RULE), section.required_text("value", VALUE_RULE)
        if header and not may_change(header.lower()):
            section.wrong("name", CHANGE_RULE)
        if value and not (is_value(value) and len(value) <= LONGEST):
            section.wrong("value", f"{VALUE_RULE}, at most {LONGEST}")
        section.close()
        result.append((header.lower(), value))
    if len(result) > MOST:
        fields.wrong(name, f"must have at most {MOST} headers")
    return tuple(result)
