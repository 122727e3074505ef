"""The text of a CNI network list, with and without our plug-in. Pure functions.

Text of other authors stays unchanged, byte for byte. Our entry is added after the last plug-in; removal
deletes the entry with the separator before it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

TYPE: Final = "meshwright-cni"
"""Name of our plug-in: the program's file name, and `type` of the entry."""
REPLACES: Final = "replaces"
"""Field of our entry with the name of the file that the list has replaced (a file with one plug-in)."""

_SPACE: Final = re.compile(r"[ \t\n\r]*")


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not valid JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_no_number)


@dataclass(frozen=True, slots=True)
class Item:
    """A JSON value with its position in the text of a network list: start, and end (excluded)."""

    value: Any
    start: int
    end: int


def network(content: bytes) -> Mapping[str, Any] | None:
    """Parse a file of network configuration; return None for a file that container runtimes skip."""
    try:
        result = _DECODER.decode(content.decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(result, dict) or not isinstance(result.get("name"), str) or not result["name"]:
        return None
    return result


def is_list(result: Mapping[str, Any]) -> bool:
    """Return whether a network configuration has a usable, non-empty list of plug-ins."""
    plugins = result.get("plugins")
    return isinstance(plugins, list) and bool(plugins) and all(map(is_plugin, plugins))


def is_plugin(result: object) -> bool:
    """Return whether a JSON value is the configuration of one plug-in, with a `type`."""
    return isinstance(result, dict) and isinstance(result.get("type"), str) and bool(result["type"])


def own(result: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the entry of Meshwright's plug-in in a network list, or None."""
    return next((plugin for plugin in result["plugins"] if plugin["type"] == TYPE), None)


def with_entry(text: str, entry: Mapping[str, Any]) -> str:
    """Return the text of a list (`is_list`) with exactly one entry of ours, which equals `entry`."""
    items = _plugins(text)
    ours = [item for item in items if item.value["type"] == TYPE]
    if not ours:
        end = items[-1].end
        return f"{text[:end]}, {json.dumps(entry)}{text[end:]}"
    if len(ours) > 1:
        return with_entry(_without(text, items, ours[-1]), entry)
    (there,) = ours
    return text if there.value == entry else f"{text[: there.start]}{json.dumps(entry)}{text[there.end :]}"


def without_entry(text: str) -> str:
    """Return the text of a network list without the entries of Meshwright's plug-in."""
    items = _plugins(text)
    ours = [item for item in items if item.value["type"] == TYPE]
    return without_entry(_without(text, items, ours[-1])) if ours else text


def as_list(text: str, result: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    """Return the text of a list with the one plug-in of a file, parsed as `result`, and with our entry.

    For example `{"name": "pods", "plugins": [{"type": "bridge", ...}, {"type": "meshwright-cni", ...}]}`.
    """
    head = {name: result[name] for name in ("cniVersion", "name") if name in result}
    return f'{json.dumps(head)[:-1]}, "plugins": [{text.strip()}, {json.dumps(entry)}]}}\n'


def _without(text: str, items: list[Item], gone: Item) -> str:
    at = items.index(gone)
    if at > 0:
        return text[: items[at - 1].end] + text[gone.end :]
    rest = items[at + 1].start if len(items) > 1 else gone.end
    return text[: gone.start] + text[rest:]


def _plugins(text: str) -> list[Item]:
    """Return the plug-ins of a list. The last of two fields with the same name counts."""
    (result,) = [item for name, item in _members(text) if name == "plugins"][-1:]
    return list(_items(text, result.start))


def _members(text: str) -> Iterator[tuple[str, Item]]:
    at = _after(text, text.index("{") + 1)
    while text[at] != "}":
        name, at = _DECODER.raw_decode(text, at)
        start = _after(text, _after(text, at) + 1)
        value, end = _DECODER.raw_decode(text, start)
        yield name, Item(value, start, end)
        at = _next(text, end)


def _items(text: str, at: int) -> Iterator[Item]:
    at = _after(text, at + 1)
    while text[at] != "]":
        value, end = _DECODER.raw_decode(text, at)
        yield Item(value, at, end)
        at = _next(text, end)


def _next(text: str, at: int) -> int:
    """Return the position of the next JSON value or member, or of the closing bracket."""
    at = _after(text, at)
    return _after(text, at + 1) if text[at] == "," else at


def _after(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()
