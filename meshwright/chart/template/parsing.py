"""Parser of Helm templates: a tree of text, output, conditions, loops and definitions."""

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from meshwright.chart.template.tokens import TemplateError, Token, tokens

_ACTION: Final = re.compile(
    r"\{\{(?P<before>-\s)?\s*(?P<body>/\*.*?\*/|.*?)\s*?(?P<after>\s-)?\}\}", re.DOTALL
)
_ENDS: Final = ("end", "else")


@dataclass(frozen=True, slots=True)
class Literal:
    """Operand of a template: a string, a number, a boolean, or nil."""

    value: object


@dataclass(frozen=True, slots=True)
class Chain:
    """Operand of a template: fields of the dot (`.`) or of a variable (`$`, `$name`)."""

    root: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """Call of a template function with arguments, or a single value."""

    function: "str | Operand"
    arguments: "tuple[Operand, ...]"


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Function calls of a template; the result of each is the last argument of the next."""

    calls: tuple[Call, ...]


Operand = Literal | Chain | Call | Pipeline


@dataclass(frozen=True, slots=True)
class Text:
    """Text of a template that is printed unchanged."""

    text: str


@dataclass(frozen=True, slots=True)
class PrintStatement:
    """Action of a template that prints the result of a pipeline; `line` is the line in the file."""

    line: int
    pipeline: Pipeline


@dataclass(frozen=True, slots=True)
class Assignment:
    """Action that sets a variable, new (`:=`) or existing (`=`), for the nodes after it."""

    line: int
    variable: str
    pipeline: Pipeline
    is_new: bool


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a template (`if`, `with` or `range`), with pipeline, body and alternative (`else`)."""

    line: int
    kind: str
    pipeline: Pipeline
    variables: tuple[str, ...]
    body: "tuple[Node, ...]"
    otherwise: "tuple[Node, ...]"


Node = Text | PrintStatement | Assignment | Block


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed template file: its nodes, and the templates from `define` by name."""

    name: str
    nodes: tuple[Node, ...]
    defined: "Mapping[str, Template]"


@functools.lru_cache(maxsize=64)  # more than the chart's files, which are the same for all values
def parsed(name: str, text: str) -> Template:
    """Parse a template. Raises TemplateError."""
    reader = _Reader(name, [*_pieces(text)])
    nodes = reader.nodes()
    if reader.at < len(reader.pieces):
        raise reader.error("ends what has not begun")
    return Template(name, nodes, {item: Template(name, of, {}) for item, of in reader.defined.items()})


def _pieces(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield a template's pieces, trimmed, without comments: line, text, and whether it is an action."""
    at, line, trims = 0, 1, False
    for match in _ACTION.finditer(text):
        before = text[at : match.start()]
        message = before.lstrip() if trims else before
        yield line, message.rstrip() if match["before"] else message, False
        # Counted before trimming, so that errors name the line in the file.
        line += before.count("\n")
        if not match["body"].startswith("/*"):
            yield line, match["body"].strip(), True
        line += match[0].count("\n")
        at, trims = match.end(), bool(match["after"])
    yield line, text[at:].lstrip() if trims else text[at:], False


class _Reader:
    """Parser of the pieces (texts and actions) of a template file."""

    def __init__(self, name: str, pieces: list[tuple[int, str, bool]]) -> None:
        self.name, self.pieces, self.at = name, pieces, 0
        self.defined: dict[str, tuple[Node, ...]] = {}
        self._line = 1

    def error(self, message: str) -> TemplateError:
        return TemplateError(f"{self.name}:{self._line}: {message}")

    def nodes(self) -> tuple[Node, ...]:
        """Read nodes until an `end` or `else` that belongs to an outer block."""
        result: list[Node] = []
        while self.at < len(self.pieces):
            self._line, text, is_action = self.pieces[self.at]
            if is_action and text.partition(" ")[0] in _ENDS:
                break
            self.at += 1
            if not is_action:
                result += [Text(text)] if text else []
            elif (node := self._action(text)) is not None:
                result.append(node)
        return tuple(result)

    def _action(self, text: str) -> Node | None:
        try:
            words = _Words([*tokens(text)])
            match words.name():
                case "if" | "with" | "range" as kind:
                    words.next()
                    return self._block(kind, words)
                case "define":
                    self._define(str(words.last_string()))
                    return None
                case "template" | "block" | "break" | "continue" as word:
                    raise ValueError(f"{word!r} is not understood here")
                case _:
                    if assigned := words.assigned():
                        variable, sign = assigned
                        return Assignment(self._line, variable, words.whole(), sign == ":=")
                    return PrintStatement(self._line, words.whole())
        except (ValueError, TypeError) as error:
            raise self.error(str(error)) from error

    def _block(self, kind: str, words: "_Words") -> Block:
        line, variables, pipeline = self._line, words.variables(), words.whole()
        body = self.nodes()
        otherwise: tuple[Node, ...] = ()
        ended = self._end()
        if ended == "else":
            otherwise = self.nodes()
            if self._end() != "end":
                raise self.error("has an else after else")
        elif ended != "end":
            # `else if` and `else with`: a block inside the alternative, with one `end` for both.
            inner = _Words([*tokens(ended)])
            inner.next()
            otherwise = (self._block(str(inner.next().text), inner),)
        return Block(line, kind, pipeline, variables, body, otherwise)

    def _define(self, name: str) -> None:
        self.defined[name] = self.nodes()
        if self._end() != "end":
            raise self.error("has an else in define")

    def _end(self) -> str:
        if self.at == len(self.pieces):
            raise self.error("is not ended")
        self._line, text, _ = self.pieces[self.at]
        self.at += 1
        return text


class _Words:
    """Parser of the words of one action: the text between `{{` and `}}` in a template."""

    def __init__(self, words: list[Token]) -> None:
        self._words, self._at = words, 0

    def name(self) -> str:
        """Return the next word if it is a name, otherwise an empty string."""
        return self._words[self._at].text if self._is("name") else ""

    def next(self) -> Token:
        if self._at == len(self._words):
            raise ValueError("something is missing")
        self._at += 1
        return self._words[self._at - 1]

    def last_string(self) -> str | int:
        self.next()
        return self.next().value

    def assigned(self) -> tuple[str, str] | None:
        """Read `$a :=` or `$a =`, if present."""
        texts = [word.text for word in self._words[:2]]
        if len(texts) == 2 and texts[1] in (":=", "="):
            self._at = 2
            return texts[0], texts[1]
        return None

    def variables(self) -> tuple[str, ...]:
        """Read the variables of a `range` at `$a :=` or `$a, $b :=`; return an empty tuple without them."""
        texts = [word.text for word in self._words[self._at : self._at + 4]]
        if texts[1:2] == [":="]:
            self._at += 2
            return (texts[0],)
        if texts[1::2] == [",", ":="]:
            self._at += 4
            return texts[0], texts[2]
        return ()

    def whole(self) -> Pipeline:
        """Read the other words of the action as a pipeline. Raises ValueError."""
        pipeline = self._pipeline()
        if self._at < len(self._words):
            raise ValueError(f"{self._words[self._at].text!r} is out of place")
        return pipeline

    def _pipeline(self) -> Pipeline:
        calls = [self._call()]
        while self._is("sign", "|"):
            self.next()
            calls.append(self._call())
        return Pipeline(tuple(calls))

    def _call(self) -> Call:
        if self._is("name") and self.name() not in ("true", "false", "nil"):
            of: str | Operand = self.next().text
        else:
            of = self._operand()
        arguments: list[Operand] = []
        while self._at < len(self._words) and not self._is("sign", "|") and not self._is("sign", ")"):
            arguments.append(self._operand())
        return Call(of, tuple(arguments))

    def _operand(self) -> Operand:
        word = self.next()
        match word.kind, word.text:
            case "string" | "number", _:
                return Literal(word.value)
            case "chain", text:
                of, *fields = text.split(".")
                return Chain(of or ".", tuple(filter(None, fields)))
            case "name", "true" | "false":
                return Literal(word.text == "true")
            case "name", "nil":
                return Literal(None)
            case "name", text:
                return Call(text, ())
            case "sign", "(":
                inner = self._pipeline()
                if not self._is("sign", ")"):
                    raise ValueError("a parenthesis is not closed")
                self.next()
                return inner
            case _:
                raise ValueError(f"{word.text!r} is out of place")

    def _is(self, kind: str, text: str = "") -> bool:
        if self._at == len(self._words):
            return False
        word = self._words[self._at]
        return word.kind == kind and text in ("", word.text)
