"""YAML scalars with their original text, because readers of YAML 1.1 and 1.2 differ.

For example, `defaultMode: 0444` is 292 for kubectl, and 444 for a reader of YAML 1.2. Calculations use
kubectl's value (sigs.k8s.io/yaml).
"""

import math
import re
from typing import Final

import yaml

from meshwright.providers.text.yaml_scalars import resolve

_BOOLEANS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false"})
_NUMERIC: Final = re.compile(
    r"[-+]?\.?[0-9][0-9a-fxo_.:+-]*|[0-9]{4}-[0-9].*|[-+]?\.(?:inf|nan)", re.IGNORECASE
)
_INTEGER: Final = re.compile(
    r"([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|0[0-7]*|[1-9][0-9]*)", re.ASCII
)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_LONGEST: Final = 100
_WHOLE: Final = 1e21
"""From this absolute value on, kubectl writes a float in JSON with an exponent."""


class Integer(int):
    """An integer with the original text from the YAML file."""

    text: str = ""


class Decimal(float):
    """A float with the original text from the YAML file."""

    text: str = ""


class PlainString(str):
    """An unquoted string that some YAML readers take for another type, for example `on`."""

    __slots__ = ()


def scalar(event: yaml.ScalarEvent) -> object:
    """Return the typed value of a scalar; raise ValueError with a sentence for an invalid one."""
    result = resolve(event)
    if event.tag is not None or not event.implicit[0] or result is None or isinstance(result, bool):
        return result
    number = _number(event.value)
    if number is None:
        return PlainString(event.value) if is_ambiguous(event.value) else event.value
    number.text = event.value
    return number


def _number(text: str) -> Integer | Decimal | None:
    """Return kubectl's number for an unquoted text, or None.

    Underscores between digits are ignored, a leading zero means octal, and a float without a fraction is an
    integer.
    """
    plain = text if text.startswith((".", "_")) else text.replace("_", "")
    # A limit, because Python converts long numbers slowly, or refuses to.
    if len(plain) > _LONGEST:
        return None
    if match := _INTEGER.fullmatch(plain):
        sign, digits = match.groups()
        # Python's base 0 rejects 0444, so YAML 1.1 octal numbers are converted explicitly.
        is_octal = len(digits) > 1 and digits.isdigit() and digits.startswith("0")
        return Integer(f"{sign}{digits}", 8) if is_octal else Integer(f"{sign}{digits}", 0)
    number = float(plain) if _FLOAT.fullmatch(plain) else math.inf
    if not math.isfinite(number):
        return None
    return Integer(number) if number.is_integer() and abs(number) < _WHOLE else Decimal(number)


def is_ambiguous(text: str) -> bool:
    """Return whether some YAML reader might take an unquoted text for another type than a string."""
    return text.lower() in _BOOLEANS or _NUMERIC.fullmatch(text) is not None


def written(manifest: object) -> str:
    """Return one manifest as text with the same meaning for every YAML reader.

    New strings are quoted if some reader would take them for a number, a date or a boolean. Strings of
    several lines stay blocks.
    """
    return yaml.dump(manifest, Dumper=_QuotingDumper, sort_keys=False, allow_unicode=True, width=1 << 20)


class _QuotingDumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - people do not want aliases in manifests
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "'" if is_ambiguous(value) else "|" if _has_plain_lines(value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style)


def _as_it_stood(dumper: yaml.SafeDumper, value: object) -> yaml.ScalarNode:
    """Return an unquoted scalar, with the tag that the dumper resolves for its text."""
    text = value.text if isinstance(value, Integer | Decimal) else str(value)
    as_taken = dumper.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    return yaml.ScalarNode(as_taken, text)


def _has_plain_lines(text: str) -> bool:
    lines = text.split("\n")
    plain = all(line.isprintable() and line == line.rstrip() for line in lines)
    return len(lines) > 1 and plain and not text.startswith((" ", "\n"))


_QuotingDumper.add_representer(str, _text)
for _kind in (Integer, Decimal, PlainString):
    _QuotingDumper.add_representer(_kind, _as_it_stood)
