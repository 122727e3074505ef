"""Tests that names of modules and classes are nouns: `LeaseRecord` and `client`, not `Held` or `asking`."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

_CLASS: Final = re.compile(r"^class (\w+)", re.MULTILINE)
ROOT: Final = Path(__file__).parents[3]
_ROOTS: Final = ("meshwright", "catalog", "certs", "xds", "demo", "tools", "benchmarks")


def _words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


# Pronouns, question words, prepositions and adverbs.
_WORDLESS: Final = _words("""
above all anybody anything apart behind below beneath beside between both by each elsewhere everybody
everyone everything for former from further he here his how in it its mine near nearest nobody nothing now
of off on one others our ours own she somebody something that them there they this those to together us we
what when where whether which who whole whom whose why with within without yours
""")
# Participles without -ed, and forms that are verbs alone.
_VERBS: Final = _words("""
asks been begun bound brought come done drawn driven fallen felt found given gone got had has heard held
hidden keeps kept known laid led left lent lost made make makes meant met paid put ran read said says seen
sent shown shows sold speak speaks spent stand stands stood stuck taken tell tells thought thrown told
understood unread unseen untaken unwritten written
""")
# Words in -ing and -ed that name a thing or an established activity of the field.
_NOUNS: Final = _words("""
binding building conclusion covering decoding deed draining encoding feed finding hashing heading issuing
listening listing load_balancing matching meaning merging need needed packing paging pacing parsing
patching pinning polling printing probing profiling pruning reading rebuilding recording rendering
reporting rotating routing sampling scaling scheduling scraping sealing seed serving setting sharding
sharing signing speed spelling string substring thing timing tracing wiring wording
""")

# Older public names: one in the chart's schema, and folders whose paths are in documents.
_KEPT: Final = _words("""
meshwright/chart/values.py:On catalog/lint/own meshwright/specs/own meshwright/agent/calling
meshwright/cli/checking meshwright/cli/migrating meshwright/controller/observing
meshwright/controller/roots/declared meshwright/engine/derived meshwright/providers/installed
""")


def _is_noun(name: str) -> bool:
    """Return whether a name of one word, in lower case, is a noun as far as its form tells."""
    if name in _WORDLESS or name in _VERBS:
        return False
    return "_" in name or name in _NOUNS or not name.endswith(("ing", "ed"))


def _class_is_named(name: str) -> bool:
    """Return whether a class has a noun for its name; of `VaultTold` and the like the last word counts."""
    words = re.findall(r"[A-Z][a-z0-9]*", name)
    if len(words) < 2:
        return _is_noun(name.lstrip("_").lower())
    return words[-1].lower() not in _VERBS | {"nobody", "nothing", "who", "what", "why", "here"}


def _modules() -> Iterator[Path]:
    for root in _ROOTS:
        yield from sorted((ROOT / root).rglob("*.py"))


def test_classes_are_named_by_nouns() -> None:
    """No class at the top of a module is named by a participle, a pronoun, a question word or a verb."""
    wrong = [
        f"{path.relative_to(ROOT)}:{name}"
        for path in _modules()
        for name in _CLASS.findall(path.read_text("utf-8"))
        if not _class_is_named(name)
    ]
    assert sorted({*wrong} - _KEPT) == []


def test_modules_are_named_by_nouns() -> None:
    """No module or folder is named by a participle, a pronoun, a question word or a verb."""
    names = {path.parent if path.stem == "__init__" else path.with_suffix("") for path in _modules()}
    wrong = {f"{name.relative_to(ROOT)}" for name in names if not _is_noun(name.name)}
    assert sorted(wrong - _KEPT) == []


@pytest.mark.parametrize(
    "name", ["Held", "Standing", "_Asked", "Who", "Nobody", "VaultTold", "Of", "WhoIsHere"]
)
def test_class_names_that_are_no_nouns_are_found(name: str) -> None:
    """The examples are former names of classes, also of private ones."""
    assert not _class_is_named(name)


@pytest.mark.parametrize(
    "name", ["LeaseRecord", "ListenError", "_Reading", "Routing", "TlsIdentity", "Proxies"]
)
def test_class_names_that_are_nouns_pass(name: str) -> None:
    """A noun may end in -ing, and an adjective may precede it."""
    assert _class_is_named(name)
