"""Whether a regular expression means the same to Envoy's RE2 and to us.

RE2 (github.com/google/re2, its Syntax page) has no lookaround, backreferences, atomic groups or
possessive quantifiers, and repeats at most 1000 times, nested repetitions multiplied. What it refuses
would have Envoy refuse a whole route configuration, so it must be found here.
"""

import re
import warnings
from dataclasses import dataclass, field

MAX_REPEAT = 1000
MAX_LENGTH = 4096
MAX_ATOMS = 2000
"""How many characters, classes and groups a pattern may come to once its repetitions are written out.

RE2 needs a few instructions for each. Envoy refuses programs of more than 100 instructions unless the
runtime key `re2.max_program_size.error_level` allows more: bootstraps must set it well above this bound.
"""

_GROUP = re.compile(r"\((?:\?(?P<kind>P<\w+>|P=|P>|<=|<!|=|!|>|#|\(|[a-zA-Z-]*[:)]|.)?)?", re.DOTALL)
_COUNT = re.compile(r"\{(?P<low>\d+)(?:,(?P<high>\d*))?\}")
_FLAGS = re.compile(r"[ims]*(?:-[ims]+)?[:)]")
_REFUSED_GROUPS = {
    "=": "lookahead (?=",
    "!": "lookahead (?!",
    "<=": "lookbehind (?<=",
    "<!": "lookbehind (?<!",
    "P=": "a backreference (?P=",
    "P>": "a call (?P>",
    ">": "an atomic group (?>",
    "#": "a comment (?#",
    "(": "a condition (?(",
}
_REFUSED_ESCAPES = frozenset("123456789ZNuU")


def regex_fault(pattern: str) -> str:
    """Return what is wrong with `pattern`, or an empty string if it is right."""
    if len(pattern) > MAX_LENGTH:
        return f"must be a regular expression of at most {MAX_LENGTH} characters"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern, re.ASCII)
    except re.error as error:
        return f"must be a regular expression: {error.msg}"
    except (RecursionError, OverflowError):
        return "must be a regular expression: this one is nested too deep or repeats too often"
    return _Scan(pattern).fault()


@dataclass(slots=True)
class _Scan:
    """One walk over a pattern that Python accepts, looking for what RE2 does not."""

    pattern: str
    position: int = 0
    depths: list[int] = field(default_factory=lambda: [1])
    """The largest nested repetition inside each open group, the outermost first."""
    atom: int = 1
    """The largest nested repetition inside the atom just passed."""
    quantified: bool = False
    sizes: list[int] = field(default_factory=lambda: [0])
    """The atoms so far in each open group, repetitions written out, the outermost first."""
    atom_size: int = 0

    def fault(self) -> str:
        while self.position < len(self.pattern):
            refused = self._step(self.pattern[self.position])
            if refused:
                return refused
        if sum(self.sizes) > MAX_ATOMS:
            return f"must come to at most {MAX_ATOMS} characters once its repetitions are written out"
        return ""

    def _step(self, character: str) -> str:
        match character:
            case "\\":
                return self._escape()
            case "[":
                return self._character_class()
            case "(":
                return self._open()
            case ")":
                self._close()
            case "*" | "+" | "?":
                return self._quantify(1, 1)
            case "{":
                return self._count()
            case _:
                self._atom(1)
        return ""

    def _atom(self, width: int) -> None:
        self.position += width
        self.atom = self.atom_size = 1
        self.sizes[-1] += 1
        self.quantified = False

    def _escape(self) -> str:
        letter = self.pattern[self.position + 1 : self.position + 2]
        if letter in _REFUSED_ESCAPES:
            return f"must do without \\{letter}, which RE2 does not have"
        self._atom(2)
        return ""

    def _character_class(self) -> str:
        end = self.position + 1
        if self.pattern[end : end + 1] == "^":
            end += 1
        end += 1
        while end < len(self.pattern) and self.pattern[end] != "]":
            if self.pattern[end : end + 2] == "[:":
                return "must do without [:classes:], which are not read alike everywhere; write a-z"
            end += 2 if self.pattern[end] == "\\" else 1
        if self.pattern[self.position : self.position + 3] in ("[[:", "[^["):
            return "must escape [ inside of brackets: \\["
        self._atom(end + 1 - self.position)
        return ""

    def _open(self) -> str:
        found = _GROUP.match(self.pattern, self.position)
        kind = (found.group("kind") if found else None) or ""
        if kind in _REFUSED_GROUPS:
            return f"must do without {_REFUSED_GROUPS[kind]}, which RE2 does not have"
        if kind and not kind.startswith("P<") and not _FLAGS.fullmatch(kind):
            return "must use no flags but i, m and s"
        self._atom(found.end() - self.position if found else 1)
        if not kind.endswith(")"):
            self.depths.append(1)
            self.sizes.append(0)
        return ""

    def _close(self) -> None:
        inner = self.depths.pop() if len(self.depths) > 1 else 1
        size = self.sizes.pop() if len(self.sizes) > 1 else 0
        self._atom(1)
        self.sizes[-1] += size
        self.atom_size += size
        self.atom = inner
        self.depths[-1] = max(self.depths[-1], inner)

    def _count(self) -> str:
        found = _COUNT.match(self.pattern, self.position)
        if found is None:
            self._atom(1)
            return ""
        times = int(found.group("high") or found.group("low"))
        return self._quantify(found.end() - self.position, max(times, int(found.group("low")), 1))

    def _quantify(self, width: int, times: int) -> str:
        mark = self.pattern[self.position]
        if self.quantified:
            if mark != "?":
                return "must do without possessive or doubled quantifiers, which RE2 does not have"
            self._atom(1)
            return ""
        self.atom *= times
        if self.atom > MAX_REPEAT:
            return f"must repeat at most {MAX_REPEAT} times, nested repetitions multiplied"
        self.depths[-1] = max(self.depths[-1], self.atom)
        self.sizes[-1] += self.atom_size * (times - 1)
        self.position += width
        self.quantified = True
        return ""
