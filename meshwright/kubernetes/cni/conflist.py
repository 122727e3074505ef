"""A list of plug-ins with ours in it, and without: text in, text out. Pure.

What others have written stays as it stands, byte for byte: our entry is put behind the last plug-in, and what
is taken out is the entry with what separates it from the one before.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

TYPE: Final = "meshwright-cni"
"""The name of our plug-in: of its program, and in its entry."""
REPLACES: Final = "replaces"
"""The field of our entry that says in whose place the list was made: a file with one plug-in."""

_SPACE: Final = re.compile(r"[ \t\n\r]*")


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_no_number)


@dataclass(frozen=True, slots=True)
class Item:
    """A value, and where it stands in a text."""

    value: Any
    start: int
    end: int


def network(content: bytes) -> Mapping[str, Any] | None:
    """Return what a file of one network says, as JSON has it; None where a runtime would pass it over."""
    try:
        found = _DECODER.decode(content.decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("name"), str) or not found["name"]:
        return None
    return found


def is_list(found: Mapping[str, Any]) -> bool:
    """Say whether it is a list of plug-ins that can be used."""
    plugins = found.get("plugins")
    return isinstance(plugins, list) and bool(plugins) and all(map(is_plugin, plugins))


def is_plugin(found: object) -> bool:
    """Say whether it is one plug-in that can be used."""
    return isinstance(found, dict) and isinstance(found.get("type"), str) and bool(found["type"])


def own(found: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return our entry in a list; None where it has none."""
    return next((each for each in found["plugins"] if each["type"] == TYPE), None)


def with_entry(text: str, entry: Mapping[str, Any]) -> str:
    """Return the text of a list (`is_list`) with our entry, once, as it is told."""
    items = _plugins(text)
    ours = [each for each in items if each.value["type"] == TYPE]
    if not ours:
        end = items[-1].end
        return f"{text[:end]}, {json.dumps(entry)}{text[end:]}"
    if len(ours) > 1:
        return with_entry(_without(text, items, ours[-1]), entry)
    (there,) = ours
    return text if there.value == entry else f"{text[: there.start]}{json.dumps(entry)}{text[there.end :]}"


def without_entry(text: str) -> str:
    """Return the text of a list without our entry, as its author has it."""
    items = _plugins(text)
    ours = [each for each in items if each.value["type"] == TYPE]
    return without_entry(_without(text, items, ours[-1])) if ours else text


def as_list(text: str, found: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    """Return a list of the one plug-in of a file, which says `found`, and of our entry."""
    head = {name: found[name] for name in ("cniVersion", "name") if name in found}
    return f'{json.dumps(head)[:-1]}, "plugins": [{text.strip()}, {json.dumps(entry)}]}}\n'


def _without(text: str, items: list[Item], gone: Item) -> str:
    at = items.index(gone)
    if at > 0:
        return text[: items[at - 1].end] + text[gone.end :]
    rest = items[at + 1].start if len(items) > 1 else gone.end
    return text[: gone.start] + text[rest:]


def _plugins(text: str) -> list[Item]:
    """Return the plug-ins of a list; of a field that is there twice the last counts."""
    (found,) = [item for name, item in _members(text) if name == "plugins"][-1:]
    return list(_items(text, found.start))


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
    """Return where the next of several things begins, or their end stands."""
    at = _after(text, at)
    return _after(text, at + 1) if text[at] == "," else at


def _after(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()
