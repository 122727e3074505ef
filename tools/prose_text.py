"""Texts for the measurement of English: docstrings and comments by package, docs, help texts and messages."""

import ast
import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import typer

ROOT: Final = Path(__file__).resolve().parent.parent
_FOLDERS: Final = ("benchmarks", "catalog", "certs", "demo", "tools", "xds")
_PRODUCT: Final = ("catalog", "certs", "meshwright", "xds")
_GENERATED: Final = frozenset(
    {"reference.md", "settings.md"}
)  # their sentences are measured where they are written
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z'-]*")
_CODE: Final = re.compile(r"^```.*?^```$|`[^`\n]*`|\b(?:None|True|False)\b", re.MULTILINE | re.DOTALL)
_SENTENCE: Final = re.compile(r"\w+ \w+ \w+")
_OPENING: Final = re.compile(r"(what|who|whom|whose|where|when|whether|which|why|how)\b", re.IGNORECASE)


@dataclass
class Text:
    """A text with counts of code: lines (without docstrings), comments, modules, first words."""

    parts: list[str] = field(default_factory=list)
    read_by_users: bool = False
    lines: int = 0
    comments: int = 0
    modules: int = 0
    openings: int = 0

    @functools.cached_property
    def _plain(self) -> str:
        return "\n".join(_CODE.sub(" ", part) for part in self.parts).lower()

    @functools.cached_property
    def _counts(self) -> Counter[str]:
        return Counter(_WORD.findall(self._plain))

    @property
    def words(self) -> int:
        """Return the number of words outside code."""
        return self._counts.total()

    def count(self, term: str) -> int:
        """Return the number of occurrences of a word or term, whole and in any case."""
        if _WORD.fullmatch(term):
            return self._counts[term.lower()]
        end = r"\b" if term[-1].isalnum() else ""
        return len(re.findall(rf"\b{re.escape(term.lower())}{end}", self._plain))


def package_names() -> list[str]:
    """Return the folders of all packages, for example `catalog` and `meshwright/delivery`."""
    inner = (f"meshwright/{item.name}" for item in (ROOT / "meshwright").iterdir() if item.is_dir())
    return sorted(name for name in (*_FOLDERS, *inner) if next((ROOT / name).rglob("*.py"), None))


def packages(names: Iterable[str]) -> dict[str, Text]:
    """Return the text of the docstrings of packages, by the names of their folders."""
    texts = {name: Text() for name in names}
    for name, text in texts.items():
        for path in sorted((ROOT / name).rglob("*.py")):
            _add_module(text, path.read_text("utf-8"))
    return texts


def _add_module(text: Text, source: str) -> None:
    docstrings, _ = _strings(source)
    text.modules += 1
    text.openings += source.startswith('"""') and bool(_OPENING.match(source, 3))
    filled = sum(1 for line in source.splitlines() if line.strip())
    text.lines += filled - sum(1 for part in docstrings for line in part.splitlines() if line.strip())
    text.comments += sum(1 for line in source.splitlines() if _is_comment(line))
    text.parts += docstrings


def _is_comment(line: str) -> bool:
    """Return whether a line has a comment; comments for tools (`# type:`, `# noqa`) do not count."""
    before, mark, comment = line.partition("# ")
    return (
        bool(mark) and not before.rstrip().endswith(("'", '"')) and not comment.startswith(("type:", "noqa"))
    )


@functools.cache
def _strings(source: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the docstrings of a module, also below assignments, and all other strings."""
    docstrings, others = {}, {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstrings[id(node.value)] = node.value.value
        elif isinstance(node, ast.Constant):
            others[id(node)] = node.value
    written = (text for known, text in others.items() if known not in docstrings)
    return (
        tuple(text for text in docstrings.values() if isinstance(text, str)),
        tuple(text for text in written if isinstance(text, str)),
    )


def areas(product: Iterable[str] = _PRODUCT) -> dict[str, Text]:
    """Return the texts for users: `docs`, `help`, and `messages` of the product's folders."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    docs = Text(
        [page.read_text("utf-8") for page in pages if page.name not in _GENERATED], read_by_users=True
    )
    help_texts = Text(list(_help()), read_by_users=True)
    known = {" ".join(part.split()) for part in help_texts.parts}
    messages = Text(
        [message for message in _messages(product) if " ".join(message.split()) not in known],
        read_by_users=True,
    )
    return {"docs": docs, "help": help_texts, "messages": messages}


def _help() -> Iterator[str]:
    """Yield the help of each command, argument and option of `meshwright`."""
    from meshwright.cli.main import app

    yield from _help_of(typer.main.get_command(app))


def _help_of(command: object) -> Iterator[str]:
    """Yield the help of a command of click, or of typer's copy of click."""
    yield getattr(command, "help", None) or ""
    for parameter in getattr(command, "params", ()):
        yield getattr(parameter, "help", None) or ""
    for inner in getattr(command, "commands", {}).values():
        yield from _help_of(inner)


def _messages(folders: Iterable[str]) -> Iterator[str]:
    """Yield the string literals with at least three words, without docstrings."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            _, texts = _strings(path.read_text("utf-8"))
            yield from (text for text in texts if _SENTENCE.search(text))
