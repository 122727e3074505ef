"""Strict cursor over a mapping: typed access by key, and an error for each unread key."""

import functools
import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypeVar

from meshwright.mesh.names import Port
from meshwright.mesh.problems.spelling import nearest
from meshwright.specs.codes import Code
from meshwright.specs.notes import Notes, Words
from meshwright.specs.quotes import TEXT_RULE, Fits, advised

T = TypeVar("T")

_COMPARED: Final = 1000
"""Maximum number of compared keys of a mapping."""

_LIKE: Final = 0.8
"""Minimum similarity (0 to 1) of an unknown field to a known one for a warning about a misspelling."""


class Fields:
    """One mapping of a manifest, at a path such as `spec.rules[0]`.

    Every getter takes a key. For an invalid value it records an error, which refuses the object, and returns
    a default, so that one reading finds all errors. A null value counts as absent, as in Kubernetes. `close`
    refuses all unread keys.

        spec = Fields({"port": 80}, "spec", notes)
        spec.required_port("port")  # 80
        spec.close()                # an error for each key except port
    """

    __slots__ = ("_keys_read", "_keys_tested", "_mapping", "notes", "path")

    def __init__(self, mapping: Mapping[str, object], path: str, notes: Notes) -> None:
        self._mapping = mapping
        self._keys_read: set[str] = set()
        # A reader tests optional keys before it reads them, so these are known too.
        self._keys_tested: set[str] = set()
        self.path = path
        self.notes = notes

    def at(self, name: str) -> str:
        """Return the path of a key of this mapping, for example `spec.rules[0].name` for `name`."""
        return f"{self.path}.{name}" if self.path else name

    def raw(self, name: str) -> object:
        """Return the unchecked value of a key, None if absent."""
        self._keys_read.add(name)
        return self._mapping.get(name)

    def has(self, name: str) -> bool:
        """Return whether the key has a value other than null; the key counts as known, and not as read."""
        self._keys_tested.add(name)
        return self._mapping.get(name) is not None

    def names(self) -> tuple[str, ...]:
        """Return the keys that are text; they do not count as read."""
        return tuple(key for key in self._mapping if isinstance(key, str))

    def accept(self, *names: str) -> None:
        """Accept these keys of the mapping with any value."""
        self._keys_read.update(names)

    def wrong(self, name: str, expected: str, code: Code = Code.WRONG_VALUE) -> None:
        """Report the value of a key as an error; the object is refused."""
        self.notes.refuse(code, self.at(name), expected, self._mapping.get(name))

    def warn(self, name: str, expected: Words, code: Code) -> None:
        """Report a warning about the value of a key; the key does not count as read."""
        self.notes.warn(code, self.at(_cut(name)), expected, self._mapping.get(name))

    def text(
        self, name: str, default: str | None = None, expected: str = TEXT_RULE, fits: Fits | None = None
    ) -> str | None:
        """Return the text of a key, or `default` if absent.

        `expected` describes the right value in the error for another type. A field with a format of its own
        gives a more specific `expected`, so that one error names both the type and the format. The advice to
        use quotes is added if the quoted value `fits`.
        """
        value = self.raw(name)
        if value is None:
            return default
        if isinstance(value, str):
            return value
        self.wrong(name, advised(expected, value, fits), Code.WRONG_TYPE)
        return default

    def required_text(self, name: str, expected: str = TEXT_RULE, fits: Fits = bool) -> str:
        """Return the text of a key, which must be present and not empty."""
        if not self.has(name):
            self._missing(name, expected)
            return ""
        # A missing field has a code of its own (MW1011), so presence is checked before the type.
        value = self.text(name, default="", expected=expected, fits=fits)
        if value == "" and self.raw(name) == "":
            self.wrong(name, expected)
        return value or ""

    def choice(self, name: str, allowed: Collection[str], default: str) -> str:
        """Return one of the `allowed` texts, or `default` if absent."""
        # YAML reads `off` as false, so the advice to use quotes is useful here.
        fits = frozenset(map(str, allowed)).__contains__
        value = self.text(name, default=default, expected=one_of(allowed), fits=fits) or default
        if value not in allowed:
            self.wrong(name, one_of(allowed))
            return default
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return the boolean of a key, or `default` if absent."""
        result = self._flag(name)
        return default if result is None else result

    def optional_flag(self, name: str) -> bool | None:
        """Return the boolean of a key, None if absent."""
        return self._flag(name)

    def whole(self, name: str, low: int, high: int, default: int | None = None) -> int | None:
        """Return a whole number from `low` to `high`, both included."""
        value = self.raw(name)
        if value is None:
            return default
        # In Python a bool is an int, so `port: true` would be read as port 1.
        if isinstance(value, bool) or not isinstance(value, int):
            self.wrong(name, f"must be a whole number from {low} to {high}, without quotes", Code.WRONG_TYPE)
            return default
        if not low <= value <= high:
            self.wrong(name, f"must be a whole number from {low} to {high}")
            return default
        return value

    def percent(self, name: str, default: float | None = None) -> float:
        """Return a percentage with at most four decimals; required if there is no default."""
        rule = "must be a number from 0 to 100 with at most four decimals"
        value = self.raw(name)
        if value is None and default is not None:
            return default
        if value is None:
            self._missing(name, rule)
        elif isinstance(value, bool) or not isinstance(value, int | float):
            self.wrong(name, rule, Code.WRONG_TYPE)
        # Envoy counts in millionths, which are four decimals of a percentage. NaN fails the comparison.
        elif not 0 <= value <= 100 or round(value, 4) != value:
            self.wrong(name, rule)
        else:
            return float(value)
        return 0.0

    def port(self, name: str) -> Port | None:
        """Return a port number, None if absent or invalid."""
        value = self.whole(name, 1, 65535)
        return None if value is None else Port(value)

    def required_port(self, name: str) -> Port:
        """Return a port number, which must be present."""
        if not self.has(name):
            self._missing(name, "must be a port number from 1 to 65535")
        # After an error any port will do, because the object is refused.
        return self.port(name) or Port(1)

    def section(self, name: str, *, required: bool = False) -> "Fields":
        """Return the mapping of a key, an empty one if absent or invalid."""
        value = self.raw(name)
        if value is None and required:
            self._missing(name, "must be a mapping")
        # dict first, because isinstance of an abstract class is slow, and this runs for every mapping.
        elif value is not None and not isinstance(value, (dict, Mapping)):
            self.wrong(name, "must be a mapping", Code.WRONG_TYPE)
            value = None
        return self._inside(value or {}, self.at(name))

    def items(self, name: str, *, required: bool = False) -> tuple[tuple[str, object], ...]:
        """Return the list of a key as pairs of path and value."""
        value = self.raw(name)
        if value is None:
            if required:
                self._missing(name, "must be a list")
            return ()
        # A text is a sequence too, and would be read as a list of its letters.
        if not isinstance(value, (list, Sequence)) or isinstance(value, str | bytes):
            self.wrong(name, "must be a list", Code.WRONG_TYPE)
            return ()
        path = self.at(name)
        return tuple([(f"{path}[{index}]", item) for index, item in enumerate(value)])

    def sections(self, name: str, *, required: bool = False) -> tuple["Fields", ...]:
        """Return the list of mappings of a key; other items are reported and left out."""
        result = []
        for path, item in self.items(name, required=required):
            if isinstance(item, (dict, Mapping)):
                result.append(self._inside(item, path))
            else:
                self.notes.refuse(Code.WRONG_TYPE, path, "must be a mapping", item)
        return tuple(result)

    def texts(self, name: str, expected: str = TEXT_RULE, fits: Fits | None = None) -> tuple[str, ...]:
        """Return the list of texts of a key, in order; `expected` and `fits` are as in `text`."""
        result = []
        for path, item in self.items(name):
            if isinstance(item, str) and item:
                result.append(item)
            else:
                text = "must not be empty" if item == "" else advised(expected, item, fits)
                self.notes.refuse(Code.WRONG_TYPE, path, text, item)
        return tuple(result)

    def ports(self, name: str) -> tuple[Port, ...]:
        """Return the list of port numbers of a key, sorted, each once."""
        result = set()
        for path, item in self.items(name):
            if isinstance(item, bool) or not isinstance(item, int) or not 1 <= item <= 65535:
                self.notes.refuse(Code.WRONG_VALUE, path, "must be a port number from 1 to 65535", item)
            else:
                result.add(Port(item))
        return tuple(sorted(result))

    def pairs(self, name: str) -> tuple[tuple[str, str], ...]:
        """Return the mapping in a key, from text to text, as sorted pairs."""
        return self.section(name).all_pairs()

    def all_pairs(self) -> tuple[tuple[str, str], ...]:
        """Return this mapping as sorted pairs of texts, without null values."""
        result = []
        for key, value in self._mapping.items():
            if isinstance(key, str) and isinstance(value, str):
                result.append((key, value))
            elif value is not None or not isinstance(key, str):
                text = advised(TEXT_RULE, value if isinstance(key, str) else key, None)
                self.notes.refuse(Code.WRONG_TYPE, f"{self.path}[{key!s:.60}]", text, value)
        return tuple(sorted(result))

    def keys_read(self) -> frozenset[str]:
        """Return the keys that the reader has read, whether present or not."""
        return frozenset(self._keys_read)

    def keys_known(self) -> frozenset[str]:
        """Return the keys that the reader has read, or has tested without reading them."""
        return frozenset(self._keys_read | self._keys_tested)

    def unasked(self) -> tuple[str, ...]:
        """Return the keys of the mapping that the reader has not read, sorted, as text."""
        return tuple(sorted(str(key) for key in self._mapping if key not in self._keys_read))

    def skim(self, *others: str) -> None:
        """Warn of each unread key that looks like a known one, except `others`, which exist in Kubernetes.

        This is for mappings of Kubernetes, with many unlisted fields. Only the first 1000 keys are compared,
        because comparing takes time and no mapping of Kubernetes has as many fields.
        """
        if self._keys_read.issuperset(self._mapping):
            return
        asked = self.keys_known()
        for key in itertools.islice(self._mapping, _COMPARED):
            if (
                isinstance(key, str)
                and key not in asked
                and (near := _meant(key, asked))
                and key not in others
            ):
                expected = f"the mesh does not read this field; did you mean {near}?"
                self.warn(key, expected, Code.LIKE_A_FIELD)

    def close(self) -> None:
        """Report each unread key as an unknown field; the object is refused."""
        if self._keys_read.issuperset(self._mapping):
            return
        for key in self.unasked():
            path = self.at(_cut(key))
            value = self._mapping.get(key)
            # The suggestion takes time (a comparison with all known names), so it is made only for a
            # problem that is kept.
            self.notes.refuse(Code.UNKNOWN_FIELD, path, functools.partial(self._unknown, key), value)

    def _unknown(self, key: str) -> str:
        known = self.keys_known()
        if near := nearest(key, known):
            return f"unknown field; did you mean {near}?"
        return f"unknown field; the known fields are {', '.join(sorted(known))}" if known else "unknown field"

    def _flag(self, name: str) -> bool | None:
        value = self.raw(name)
        if value is None or isinstance(value, bool):
            return value
        self.wrong(name, "must be true or false, without quotes", Code.WRONG_TYPE)
        return None

    def _inside(self, mapping: Mapping[str, object], path: str) -> "Fields":
        return Fields(mapping, path, self.notes)

    def _missing(self, name: str, expected: str) -> None:
        self.notes.refuse(Code.MISSING, self.at(name), f"is missing; {expected}")


@functools.lru_cache(1024)
def _meant(name: str, known: frozenset[str]) -> str | None:
    return nearest(name, known, _LIKE)


def _cut(name: str) -> str:
    return name if len(name) <= 60 else name[:57] + "..."


def one_of(allowed: Collection[str]) -> str:
    """Return the rule "must be one of ..." for an error, with the allowed values in a stable order."""
    names = sorted(allowed)
    return f"must be {names[0]}" if len(names) == 1 else f"must be one of {', '.join(names)}"


def duplicates(items: Sequence[T]) -> tuple[int, ...]:
    """Return the indexes of the items that repeat an earlier item, for example `(2,)` for `a, b, a`."""
    seen: set[T] = set()
    again = []
    for index, item in enumerate(items):
        if item in seen:
            again.append(index)
        seen.add(item)
    return tuple(again)
