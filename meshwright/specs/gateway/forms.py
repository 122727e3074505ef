"""Forms of texts and lists in the Gateway API, from the schemas of the CRDs."""

import ipaddress
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, duplicates, one_of

_SUBDOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_PATH: Final = r"[A-Za-z0-9/._~%!$&'()*+,;=:-]+"
_NO_LIMIT: Final = 2**63 - 1
"""Largest whole number in a field without a limit of its own."""


@dataclass(frozen=True, slots=True)
class TextForm:
    """Form of a text: its rule in words, pattern for the whole text, and maximum number of characters."""

    rule: str
    pattern: re.Pattern[str]
    longest: int

    def fits(self, text: str) -> bool:
        """Return whether a text has this form; half of a surrogate pair never fits."""
        return (
            len(text) <= self.longest
            and self.pattern.fullmatch(text) is not None
            and not _SURROGATE.search(text)
        )


def _form(rule: str, pattern: str, longest: int) -> TextForm:
    return TextForm(f"{rule}, at most {longest} characters", re.compile(pattern, re.DOTALL), longest)


# A surrogate has no UTF-8 form, so it can be neither sent to Envoy nor written to the log.
_SURROGATE: Final = re.compile("[\ud800-\udfff]")

GROUP: Final = _form("must be an API group, empty for the core group", f"({_SUBDOMAIN})?", 253)
KIND: Final = _form("must be a kind, for example Service", "[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?", 63)
NAME: Final = _form("must be the name of an object", ".+", 253)
NAMESPACE: Final = _form("must be a namespace: a DNS label", "[a-z0-9]([-a-z0-9]*[a-z0-9])?", 63)
SECTION: Final = _form("must be a name of a-z, 0-9, hyphens and dots", _SUBDOMAIN, 253)
HOSTNAME: Final = _form(
    "must be a DNS name in lower case, for example shop.example or *.example", rf"(\*\.)?{_SUBDOMAIN}", 253
)
PRECISE_HOSTNAME: Final = _form("must be a DNS name in lower case without *", _SUBDOMAIN, 253)
FIELD_NAME: Final = _form(
    "must be a name of letters, digits and !#$%&'*+-.^_`|~", r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", 256
)
HEADER_VALUE: Final = _form("must be the value of a header, not empty", ".+", 4096)
PARAMETER_VALUE: Final = _form("must be the value of a query parameter, not empty", ".+", 1024)
PATH_TEXT: Final = _form("must be a path", ".*", 1024)
DURATION: Final = _form(
    "must be a duration of h, m, s or ms, for example 10s or 1m30s", "([0-9]{1,5}(h|m|s|ms)){1,4}", 32
)
ORIGIN: Final = _form(
    "must be *, or an origin such as https://shop.example or https://*.example:8443",
    r"\*|https?://(((\*\.)?([a-zA-Z0-9-]+\.)*[a-zA-Z0-9-]+|\*)(:([0-9]{1,5}))?)",
    253,
)
PROTOCOL: Final = _form(
    "must be a protocol, for example HTTP or example.com/custom",
    "[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?|.*[a-z0-9]/[A-Za-z0-9]+",
    255,
)
# The alternatives in the CRD's pattern are not anchored, so more fits than is meant.
ADDRESS_TYPE: Final = _form(
    "must be IPAddress, Hostname or another type such as example.com/pool",
    rf"Hostname.*|.*(IPAddress|NamedAddress).*|.*[a-z0-9]/{_PATH}",
    253,
)
ADDRESS_VALUE: Final = _form("must be an address", ".*", 253)
CONTROLLER: Final = _form(
    "must be a domain and a path, for example example.com/gateways", f"{_SUBDOMAIN}/{_PATH}", 253
)
DESCRIPTION: Final = _form("must be a description", ".*", 64)
LABEL_KEY: Final = _form(
    "must be the key of a label or an annotation, for example team or example.com/team",
    rf"(?![^/]{{253}})({_SUBDOMAIN}/)?([A-Za-z0-9][-A-Za-z0-9_.]{{0,61}})?[A-Za-z0-9]",
    316,
)
LABEL_VALUE: Final = _form(
    "must be the value of a label: letters, digits and inner -_.",
    "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
    63,
)
WELL_KNOWN: Final = _form(
    "must be System, or a name such as example.com/authorities",
    rf"System|{_SUBDOMAIN}/([A-Za-z0-9][-A-Za-z0-9_.]{{0,61}})?[A-Za-z0-9]",
    253,
)
URI: Final = _form("must be a URI such as spiffe://shop.example/cart", "[^:/?#]+://.*", 253)
ANNOTATION_VALUE: Final = _form("must be a text", ".*", 4096)


def is_ip_address(text: str) -> bool:
    """Return whether a text is an IP address without a zone."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def optional(fields: Fields, name: str, form: TextForm) -> str | None:
    """Return the text of a key, None if absent; a text of another form is an error."""
    text = fields.text(name, expected=form.rule, fits=form.fits)
    if text is not None and not form.fits(text):
        fields.wrong(name, form.rule)
    return text


def required(fields: Fields, name: str, form: TextForm) -> str:
    """Return the text of a key, which must be present."""
    if not fields.has(name):
        missing(fields, name, form.rule)
    return optional(fields, name, form) or ""


def choice(fields: Fields, name: str, allowed: Collection[str], default: str) -> str:
    """Return one of the `allowed` texts, `default` if absent; an empty text is an error."""
    if fields.raw(name) == "":
        fields.wrong(name, one_of(allowed))
        return default
    return fields.choice(name, allowed, default)


def optional_choice(fields: Fields, name: str, allowed: Collection[str]) -> str | None:
    """Return one of the `allowed` texts, None if absent."""
    if not fields.has(name):
        fields.raw(name)  # so that a null counts as read
        return None
    return choice(fields, name, allowed, "") or None


def missing(fields: Fields, name: str, rule: str) -> None:
    """Report a key that must be present."""
    fields.notes.refuse(Code.MISSING, fields.at(name), f"is missing; {rule}")


def limited(fields: Fields, name: str, most: int, least: int = 0) -> tuple[Fields, ...]:
    """Return a list of mappings, with `least` to `most` items; only the first `most` items are returned."""
    if least and not fields.has(name):
        missing(fields, name, "must be a list")
    # Only the allowed items become sections, so a list of any length takes little time.
    count = _count(fields, name, most, least)
    return fields.sections(name) if count <= most else ()


def limited_texts(fields: Fields, name: str, form: TextForm, most: int, least: int = 0) -> tuple[str, ...]:
    """Return a list of texts of a form, with `least` to `most` items."""
    if least and not fields.has(name):
        missing(fields, name, "must be a list")
    if _count(fields, name, most, least) > most:
        return ()
    texts = fields.texts(name, form.rule, form.fits)
    for path, item in fields.items(name):
        if isinstance(item, str) and item and not form.fits(item):
            fields.notes.refuse(Code.WRONG_VALUE, path, form.rule, item)
    return texts


def distinct_texts(fields: Fields, name: str, form: TextForm, most: int) -> tuple[str, ...]:
    """Return a list of texts of a form, with at most `most` items, which must differ."""
    texts = limited_texts(fields, name, form, most)
    for index in duplicates(texts):
        fields.notes.refuse(
            Code.DUPLICATE, f"{fields.at(name)}[{index}]", "must differ from the items before", texts[index]
        )
    return texts


def limited_pairs(
    fields: Fields, name: str, most: int, value: TextForm, key: TextForm | None = None
) -> tuple[tuple[str, str], ...]:
    """Return a mapping with at most `most` texts as sorted pairs, whose keys and values have these forms."""
    section = fields.section(name)
    pairs = section.all_pairs()
    if len(pairs) > most:
        fields.wrong(name, f"must have at most {most} items")
        return ()
    for label, text in pairs:
        if key is not None and not key.fits(label):
            section.notes.refuse(Code.WRONG_VALUE, f"{section.path}[{label:.60}]", key.rule)
        elif not value.fits(text):
            section.notes.refuse(Code.WRONG_VALUE, f"{section.path}[{label:.60}]", value.rule, text)
    return pairs


def at_least(fields: Fields, name: str, low: int, default: int | None = None) -> int | None:
    """Return a whole number of 32 bits that is `low` or more."""
    return fields.whole(name, low, 2**31 - 1, default)


def generation_of(metadata: Fields) -> int:
    """Return `metadata.generation`, 0 if absent."""
    return metadata.whole("generation", 0, _NO_LIMIT, 0) or 0


def attempts_of(fields: Fields, name: str) -> int:
    """Return a number of attempts without an upper limit, 1 if absent."""
    number = fields.whole(name, 0, _NO_LIMIT, 1)
    return 1 if number is None else number


def _count(fields: Fields, name: str, most: int, least: int) -> int:
    items = fields.raw(name)
    count = len(items) if isinstance(items, list | tuple) else 0
    if count > most:
        fields.wrong(name, f"must have at most {most} items")
    elif fields.has(name) and isinstance(items, list | tuple) and count < least:
        fields.wrong(name, "must have at least one item", Code.EMPTY)
    return count
