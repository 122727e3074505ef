"""Values of an installation: from the command line over files over the chart's defaults, as in Helm."""

import copy
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from meshwright.chart.values import ValuesError

_NUMBER: Final = re.compile(r"-?(0|[1-9]\d*)")
_WORDS: Final[Mapping[str, object]] = {"true": True, "false": False, "null": None}
_STEP: Final = re.compile(r"(?P<name>(?:\\.|[^\[\]])*)(?P<places>(?:\[[^\[\]]*\])*)")
_MOST: Final = 65_536
"""Largest index of a list, as in Helm."""
_Path = list[str | int]


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge values `above` into `below`: mappings are merged, null deletes, everything else is replaced."""
    result = dict(below)
    for name, value in above.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping):
            under = below.get(name)
            result[name] = merged(under if isinstance(under, Mapping) else {}, value)
        else:
            result[name] = value
    return result


def parse_set(
    words: Iterable[str], below: Mapping[str, Any] | None = None, *, as_text: bool = False
) -> dict[str, Any]:
    r"""Parse `--set`: NAME.NAME=VALUE, several separated by commas; `\` escapes a separator.

    For example `image.tag=1.2.3,settings.log_level=debug`. NAME[0] replaces an item in the list at NAME in
    `below`, as in Helm. With `as_text` every value is text, as in `--set-string`. Raises ValuesError.
    """
    option, result = "--set-string" if as_text else "--set", dict[str, Any]()
    for word in words:
        for one in _split(word, ","):
            path, sign, value = one.partition("=")
            if not sign or not path:
                raise ValuesError(f"{option} {one!r}: must be NAME=VALUE, for example image.tag=1.2.3")
            _enter(
                result, _path(option, path), _text(value) if as_text else _value(value), below or {}, option
            )
    return result


def parse_set_json(words: Iterable[str], below: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Parse the words of `--set-json`: NAME=JSON, or a whole mapping of values. Raises ValuesError."""
    result: dict[str, Any] = {}
    for each in words:
        whole = each.lstrip().startswith("{")
        path, sign, text = ("", "=", each) if whole else each.partition("=")
        if not sign or not (path or whole):
            raise ValuesError(
                f'--set-json {each!r}: must be NAME=JSON, for example tolerations=[{{"operator": "Exists"}}]'
            )
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValuesError(f"--set-json {each!r}: is not JSON: {error}") from error
        if whole:
            result = merged(result, value)
        else:
            _enter(result, _path("--set-json", path), value, below or {}, "--set-json")
    return result


def _split(text: str, sign: str) -> Iterator[str]:
    """Yield the parts of a text between separators, except separators that are escaped or in braces."""
    begun, depth = "", 0
    for at, item in enumerate(text):
        depth += {"{": 1, "}": -1}.get(item, 0)
        if item == sign and depth == 0 and not text[:at].endswith("\\"):
            yield begun
            begun = ""
        else:
            begun += item
    yield begun


def _path(option: str, text: str) -> _Path:
    """Return the names and indexes in the path of a value, such as `a.b[0].c`. Raises ValuesError."""
    result: _Path = []
    for item in _split(text, "."):
        step = _STEP.fullmatch(item)
        places = re.findall(r"\[([^\[\]]*)\]", step["places"]) if step else []
        if step is None or not (step["name"] or (result and places)):
            raise ValuesError(
                f"{option} {text!r}: must be a path, for example image.tag or tolerations[0].key"
            )
        result += [_plain(step["name"])] if step["name"] else []
        for place in places:
            if not place.isascii() or not place.isdigit() or int(place) > _MOST:
                raise ValuesError(f"{option} {text!r}: [{place}] must be a place from 0 to {_MOST}")
            result.append(int(place))
    return result


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _text(text: str) -> object:
    if text.startswith("{") and text.endswith("}"):
        return [_plain(item) for item in _split(text[1:-1], ",")] if text != "{}" else []
    return _plain(text)


def _value(text: str) -> object:
    if text.startswith("{") and text.endswith("}"):
        return [_value(item) for item in _split(text[1:-1], ",")] if text != "{}" else []
    if text in _WORDS:
        return _WORDS[text]
    return int(text) if _NUMBER.fullmatch(text) else _plain(text)


def _enter(result: dict[str, Any], path: _Path, value: object, below: object, option: str) -> None:
    """Set a value at a path; lists on the way start as the lists of `below`."""
    inner: Any = result
    for step, following in itertools.pairwise(path):
        below = _at(below, step)
        inner = _inner(inner, step, following, below, option, path)
    _put(inner, path[-1], value, option, path)


def _inner(inner: Any, step: str | int, following: str | int, below: object, option: str, path: _Path) -> Any:  # noqa: ANN401 - values of YAML
    """Return the mapping or list at the next step of a path, created if missing."""
    wanted = list if isinstance(following, int) else dict
    there = _at(inner, step)
    if there is None:
        # A list replaces the list of `below` as a whole, so one item is set in a copy of that list.
        copied = isinstance(following, int) or isinstance(step, int)
        there = copy.deepcopy(below) if copied and isinstance(below, wanted) else wanted()
        _put(inner, step, there, option, path)
    if not isinstance(there, wanted):
        raise ValuesError(f"{option} {_written(path)}: {step} has another value already")
    return there


def _put(inner: Any, step: str | int, value: object, option: str, path: _Path) -> None:  # noqa: ANN401 - values of YAML
    if isinstance(step, str):
        if not isinstance(inner, dict):
            raise ValuesError(f"{option} {_written(path)}: {step} is in a list")
        inner[step] = value
        return
    # As in Helm, null fills the places before the new item.
    inner.extend([None] * (step + 1 - len(inner)))
    inner[step] = value


def _at(values: object, step: str | int) -> object:
    if isinstance(values, Mapping) and isinstance(step, str):
        return values.get(step)
    if isinstance(values, list) and isinstance(step, int) and step < len(values):
        return values[step]
    return None


def _written(path: _Path) -> str:
    return "".join(f"[{item}]" if isinstance(item, int) else f".{item}" for item in path).removeprefix(".")
