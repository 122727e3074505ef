"""Values of an installation: the command line's over those of files over the chart's own, as in Helm."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from deploy.values import ValuesError

_NUMBER: Final = re.compile(r"-?(0|[1-9]\d*)")
_WORDS: Final[Mapping[str, object]] = {"true": True, "false": False, "null": None}


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Lay values over others: mappings are merged, a null takes away what is below, all else is exchanged."""
    found = dict(below)
    for name, value in above.items():
        if value is None:
            found.pop(name, None)
        elif isinstance(value, Mapping):
            under = below.get(name)
            found[name] = merged(under if isinstance(under, Mapping) else {}, value)
        else:
            found[name] = value
    return found


def told(words: Iterable[str]) -> dict[str, Any]:
    r"""Return what `--set` says: NAME.NAME=VALUE, with commas between several; `\` before a plain sign."""
    found: dict[str, Any] = {}
    for each in words:
        for one in _split(each, ","):
            path, sign, value = one.partition("=")
            if not sign or not path:
                raise ValuesError(f"--set {one!r}: must be NAME=VALUE, such as image.tag=1.2.3")
            _enter(found, [_plain(name) for name in _split(path, ".")], _value(value))
    return found


def _split(text: str, sign: str) -> Iterator[str]:
    """Yield the parts between signs that have no backslash before them, and are in no braces."""
    begun, depth = "", 0
    for at, each in enumerate(text):
        depth += {"{": 1, "}": -1}.get(each, 0)
        if each == sign and depth == 0 and not text[:at].endswith("\\"):
            yield begun
            begun = ""
        else:
            begun += each
    yield begun


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _value(text: str) -> object:
    if text.startswith("{") and text.endswith("}"):
        return [_value(each) for each in _split(text[1:-1], ",")] if text != "{}" else []
    if text in _WORDS:
        return _WORDS[text]
    return int(text) if _NUMBER.fullmatch(text) else _plain(text)


def _enter(found: dict[str, Any], path: list[str], value: object) -> None:
    *above, last = path
    for name in above:
        inner = found.setdefault(name, {})
        if not isinstance(inner, dict):
            raise ValuesError(f"--set {'.'.join(path)}: {name} has another value already")
        found = inner
    found[last] = value
