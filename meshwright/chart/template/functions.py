"""Functions of templates: some of Go's own and some of Helm's, with the same results."""

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import yaml

Value = Any

_PLAIN: Final = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")
_OTHER: Final = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null", "inf", "nan"))
# Go's encoder escapes these characters, so that JSON is safe inside HTML.
_ESCAPED: Final = {item: f"\\u{ord(item):04x}" for item in "<>&\u2028\u2029"}


class _Dumper(yaml.SafeDumper):
    """YAML dumper with quotes around every text that any YAML parser might read as another type.

    For example `on` is a boolean in YAML 1.1, and a text in YAML 1.2.
    """

    def ignore_aliases(self, data: object) -> bool:
        del data
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    plain = _PLAIN.fullmatch(value) and value.lower() not in _OTHER
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if plain else '"')


_Dumper.add_representer(str, _text)


def as_yaml(value: Value) -> str:
    """Return a value as YAML with sorted keys, without the final newline (Helm's `toYaml`)."""
    text = yaml.dump(value, Dumper=_Dumper, width=1_000_000, allow_unicode=True)
    return str(text).removesuffix("...\n").removesuffix("\n")


def from_yaml(text: str) -> Value:
    """Return the value of a text of one YAML document (Helm's `fromYaml`).

    libyaml reads the chart ten times as fast as PyYAML's own parser.
    """
    return yaml.load(text, Loader=yaml.CSafeLoader)


def as_json(value: Value) -> str:
    """Return a value as JSON in Go's format (Helm's `toJson`)."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "".join(_ESCAPED.get(item, item) for item in text)


def printed(value: Value) -> str:
    """Return the text that an action with this value prints in a template's output."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case str() | int():
            return str(value)
        case _:
            raise ValueError(f"prints {value!r:.60}: toYaml or toJson says how")


def _quoted(value: Value) -> str:
    return "" if value is None else json.dumps(printed(value), ensure_ascii=False)


def _indented(spaces: int, text: str) -> str:
    return "\n".join(" " * spaces + line for line in text.split("\n"))


def _set_default(default: Value, value: Value = None) -> Value:
    return value or default


def _equal(first: Value, *others: Value) -> bool:
    # In Python 1 equals True, but in Go the types differ.
    return any(first == item and isinstance(first, bool) == isinstance(item, bool) for item in others)


def _merged(first: Mapping[str, Value], *others: Mapping[str, Value]) -> dict[str, Value]:
    """Return the fields of all mappings, merged at every level: the first non-empty value counts."""
    result = dict(first)
    for other in others:
        for name, value in other.items():
            if isinstance(result.get(name), Mapping) and isinstance(value, Mapping):
                result[name] = _merged(result[name], value)
            else:
                result[name] = result.get(name) or value  # an empty value counts as missing, as in Helm
    return result


def _mapping(*words: Value) -> dict[str, Value]:
    return dict(zip(words[::2], words[1::2], strict=True))


def _dug(*words: Value) -> Value:
    """Return the value at a path of keys, or the default, which precedes the mapping (Helm's `dig`)."""
    *path, default, value = words
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return default
        value = value[name]
    return value


def _failed(message: str) -> Value:
    raise ValueError(message)


def _formatted(form: str, *values: Value) -> str:
    if re.search(r"%(?![sd])", form):
        raise ValueError(f"printf {form!r}: only %s and %d are understood here")
    return form % tuple(item if isinstance(item, int) else printed(item) for item in values)


FUNCTIONS: Final[Mapping[str, Callable[..., Value]]] = {
    # As in Go, `and` and `or` return one of their arguments, not a boolean.
    "addf": lambda *item: sum(map(float, item)),
    "and": lambda *item: next((one for one in item if not one), item[-1]),
    "or": lambda *item: next((one for one in item if one), item[-1]),
    "not": lambda value: not value,
    "eq": _equal,
    "ne": lambda first, second: not _equal(first, second),
    "b64dec": lambda text: base64.b64decode(text).decode(),
    "contains": lambda part, text: part in text,
    "ceil": lambda value: float(math.ceil(value)),
    "default": _set_default,
    "dict": _mapping,
    "dig": _dug,
    "list": lambda *item: list(item),
    "lookup": lambda *_: {},  # as in `helm template`, which asks no cluster
    "fail": _failed,
    "fromYaml": from_yaml,
    "hasKey": lambda mapping, name: name in mapping,
    "indent": _indented,
    "int": int,
    "merge": _merged,
    "nindent": lambda spaces, text: "\n" + _indented(spaces, text),
    "printf": _formatted,
    "quote": _quoted,
    "replace": lambda old, new, text: text.replace(old, new),
    "sha256sum": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    "toJson": as_json,
    "toYaml": as_yaml,
    "ternary": lambda first, second, value: first if value else second,
    "trim": str.strip,
    "trunc": lambda length, text: text[:length],
}
