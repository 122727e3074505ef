"""Links, headings and mentions of pages in the repository's Markdown, without reading any other file.

The rules are GitHub's, because readers follow the links there. Code is skipped: a link in backticks or in a
fenced block is shown, not followed.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

_FENCE: Final = re.compile(r"^[ \t]*(```+|~~~+)[^\n]*\n.*?^[ \t]*\1[ \t]*$", re.MULTILINE | re.DOTALL)
_SPAN: Final = re.compile(r"(?<!`)(?:``[^\n]+?``|`[^`\n]+(?:\n(?![ \t]*\n)[^`\n]*)*`)(?!`)")
_INLINE: Final = re.compile(r"\]\(\s*<?([^)\s>]+)")
_DEFINITION: Final = re.compile(r"^ {0,3}\[[^\]\n]+\]:\s+<?([^\s>]+)", re.MULTILINE)
_HTML: Final = re.compile(r'\b(?:src|href)="([^"]+)"')
_HEADING: Final = re.compile(r"^ {0,3}#{1,6}[ \t]+(.+?)(?:[ \t]+#+)?[ \t]*$", re.MULTILINE)
_TARGET: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_HTML_ANCHOR: Final = re.compile(r'<a (?:id|name)="([^"]+)"')
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_OWN_FILE: Final = re.compile(r"file:|https?://[^/]+/[^/]+/meshwright/(?:blob|tree|raw)/", re.IGNORECASE)
_MENTION: Final = re.compile(r"(?<![\w./-])(?:\.{1,2}/)*(docs/[\w./-]*\w\.md)\b(?:#([\w-]+))?")


@dataclass(frozen=True, slots=True)
class Link:
    """A link on a page: the path of its target as written (empty: the page itself), and the anchor."""

    path: str
    anchor: str


def links(text: str) -> Iterator[Link]:
    """Yield the links and images of a page, in its order for each of the three forms."""
    # An empty span keeps the brackets around it, so that the text of a link may be code.
    plain = _SPAN.sub("", _FENCE.sub("", text))
    for form in (_INLINE, _DEFINITION, _HTML):
        for target in form.findall(plain):
            path, _, anchor = target.partition("#")
            yield Link(unquote(path), anchor)


def anchors(text: str) -> set[str]:
    """Return the anchors of a page; equal headings get `-1`, `-2` and so on, in the page's order."""
    plain = _FENCE.sub("", text)
    result = set(_HTML_ANCHOR.findall(plain))
    for heading in _HEADING.findall(plain):
        slug = re.sub(r"[^\w\- ]", "", _TARGET.sub(r"\1", heading).lower()).replace(" ", "-")
        number = 0
        while (name := f"{slug}-{number}" if number else slug) in result:
            number += 1
        result.add(name)
    return result


def broken_links(pages: Mapping[str, str], files: frozenset[str]) -> list[str]:
    """Return a sentence for each broken link of `pages` (text by path from the root) to `files`."""
    targets = files.union(*map(_folders, files))
    known = {page: anchors(text) for page, text in pages.items()}
    return [
        f"{page}: {link.path}{link.anchor and '#'}{link.anchor}: {fault}"
        for page, text in pages.items()
        for link in links(text)
        if (fault := _fault(page, link, targets, known))
    ]


def _folders(file: str) -> Iterator[str]:
    yield "."
    while file := posixpath.dirname(file):
        yield file


def _fault(page: str, link: Link, targets: frozenset[str], known: Mapping[str, set[str]]) -> str | None:
    if link.path.startswith("/") or _OWN_FILE.match(link.path):
        return "link to files of the repository by a relative path"
    if _SCHEME.match(link.path):
        return None
    target = posixpath.normpath(posixpath.join(posixpath.dirname(page), link.path)) if link.path else page
    if target not in targets:
        return f"{target} does not exist"
    if link.anchor and link.anchor not in known.get(target, ()):
        return f"{target} has no such heading"
    return None


def lost_mentions(text: str, pages: Mapping[str, set[str]]) -> list[str]:
    """Return the mentions of pages below docs/ that do not exist; `pages` are the anchors of each page.

    A mention is a path from the root, for example `docs/index.md#start` in a message or a comment.
    """
    return [
        f"{path}{anchor and '#'}{anchor}"
        for path, anchor in _MENTION.findall(text)
        if path not in pages or (anchor and anchor not in pages[path])
    ]
