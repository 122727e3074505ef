"""Tests of the fast line-based YAML reader: it equals the event-based parser, or leaves the text to it."""

import itertools
import random
import re
from collections.abc import Callable, Iterable

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks.meshes.generator import files
from meshwright.providers.text import documents as module
from meshwright.providers.text import yaml_lines
from meshwright.providers.text.documents import documents
from meshwright.providers.text.yaml_lines import OTHER, plain_value
from meshwright.providers.text.yaml_scalars import plain_scalar
from meshwright.providers.text.yaml_value import MAX_DEPTH, MAX_NODES, yaml_value
from tests.tools.hypothesis_profiles import examples

KEYS = ["", "a:", "b:", "c: ", "d: ", "1:", "~: ", "<<: ", '"e": ', "f/g.h: ", "? "]
VALUES = [
    *(
        "",
        "x",
        "y z",
        "1",
        "-1",
        "0x1F",
        "1.5",
        "yes",
        "~",
        "null",
        "2026-01-02",
        "12:30",
        "a:b",
        "x: y",
        "a :b",
    ),
    *(
        "'q'",
        '"q"',
        '"q" # c',
        "'it''s'",
        '"\\n"',
        "[]",
        "{}",
        "[a]",
        "{a: b}",
        "&x y",
        "*x",
        "!!str 1",
        "|",
        ">",
    ),
    *(
        "# c",
        " # c",
        "a#b",
        "a #b",
        "-",
        "- x",
        "-q",
        "---",
        "...",
        "/p/.*",
        ".+",
        "%",
        "@",
        "é",
        "\t",
        "x\ty",
        "\r",
    ),
]
LINES = st.builds(
    lambda indent, dash, key, value: f"{' ' * indent}{dash}{key}{value}",
    st.integers(0, 5),
    st.sampled_from(["", "", "- ", "-  ", "-"]),
    st.sampled_from(KEYS),
    st.sampled_from(VALUES),
)


@settings(max_examples=examples(60, fresh=600))
@given(st.lists(LINES, min_size=1, max_size=8).map("\n".join))
@example("a:\n- b: c\n  d:\n  - e\nf: 1")
@example("a: x\n  b: y")
@example("- a: x\n- b: y\n  a: z")
def test_lines_and_events_give_the_same_value(text: str) -> None:
    """The types of scalars and the order of keys are equal too, and the parser finds no fault."""
    result = plain_value(text)
    if result is not OTHER:
        value, faults = yaml_value(text, 1)
        assert (repr(result), ()) == (repr(value), faults)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1\n", {"a": 1}),
        ("# c\na:\n  b: x # c\n\n  c: 'y'\nd:", {"a": {"b": "x", "c": "y"}, "d": None}),
        ("a:\n- 1\n- b: yes\n  c:\n  - d\n  - ''\ne: []\n", {"a": [1, {"b": True, "c": ["d", ""]}], "e": []}),
        ("a:\n    - b: {}\n      c: http://x/y?z=[1]#f\n", {"a": [{"b": {}, "c": "http://x/y?z=[1]#f"}]}),
        ("- x y\n-   z: .*\n    w: -1", ["x y", {"z": ".*", "w": "-1"}]),
        ('on: "on"\n80: on', {"on": "on", "80": True}),
    ],
)
def test_usual_manifest_style_is_read_by_lines(text: str, value: object) -> None:
    """This is blocks of scalars with comments; keys are text."""
    assert repr(plain_value(text)) == repr(value).replace("'-1'", "-1")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "# c",
            "x",
            "a: 1\na: 2",
            "a: &x 1",
            "a: [1]",
            "a: |\n  b",
            "a: x\n  y",
            "<<: {}",
            "a:\tb",
            "a: é",
        ),
        *(
            "a: x\n- b",
            " a: 1\nb: 2",
            "- a\nb: 1",
            "- - a",
            "-\n  a: 1",
            "a: b: c",
            "a: 'it''s'",
            "a: 1\r\nb: 2",
        ),
        "a: " + "x" * 1000,
        "".join(f"{' ' * depth}a:\n" for depth in range(MAX_DEPTH + 1)),
        "".join(f"{' ' * depth}a:\n" for depth in range(MAX_DEPTH - 1)) + f"{' ' * (MAX_DEPTH - 2)}- []",
        "a: b\n" + "# c\n" * (MAX_NODES // 4),
    ],
)
def test_other_yaml_is_left_to_the_event_parser(text: str) -> None:
    """The text may be wrong, too large, or in another style."""
    assert plain_value(text) is OTHER


def test_each_result_has_its_own_lists_and_mappings() -> None:
    """Lines are cached, but a caller may change its result."""
    first, second = plain_value("a: []\nb: {}"), plain_value("a: []\nb: {}")
    assert first == second == {"a": [], "b": {}}
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert first["a"] is not second["a"]
    assert first["b"] is not second["b"]


def test_generated_mesh_is_read_by_lines_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Manifests as a tool writes them never need the event parser."""

    def by_events(text: str, _: int) -> object:
        raise AssertionError(f"read by events: {text}")

    monkeypatch.setattr(module, "yaml_value", by_events)
    result = [document for text in files(20).values() for document in documents(text)]
    assert len(result) == 20 * 9 + 2 + 1


ALPHABET = "ab1:- #\n\r\t'\"[]{}&*!|>?%@`,~.=<\\/$é\x85\u2028\ufeff"
"""What YAML gives a meaning to, and what it forbids or breaks lines at."""

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**6), 10**6),
    st.sampled_from([*VALUES, "yes", "0o17", "1e3", ".5", "null", "team-1", "a: b", "x #y", " x", "x "]),
    st.text(ALPHABET, max_size=6),
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text("abc-./ 1~", min_size=1, max_size=4), inner)
    ),
    max_leaves=12,
)
DUMPED = st.builds(
    lambda tree, indent, width, unicode, style, flow: yaml.safe_dump(
        {"top": tree},
        indent=indent,
        width=width,
        allow_unicode=unicode,
        default_style=style,
        default_flow_style=flow,
        sort_keys=False,
    ),
    TREES,
    st.integers(2, 5),
    st.sampled_from([10, 80, 10_000]),
    st.booleans(),
    st.sampled_from([None, None, None, "'", '"', "|"]),
    st.sampled_from([False, False, None]),
)
EDITS = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 2), st.text(ALPHABET, max_size=2)), max_size=3)


def _edited(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """Replace a few characters."""
    for at, length, put in edits:
        place = at % (len(text) + 1)
        text = text[:place] + put + text[place + length :]
    return text


class DifferingYaml(Exception):
    """YAML that PyYAML reads and our parser refuses: duplicate keys, keys that are no text, merges."""


def _meant(node: yaml.Node) -> object:
    match node:
        case yaml.ScalarNode():
            return node.value if node.style else plain_scalar(node.value)
        case yaml.SequenceNode():
            return [_meant(item) for item in node.value]
        case yaml.MappingNode():
            keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            if len(keys) != len(node.value) or len({*keys}) != len(keys) or "<<" in keys:
                raise DifferingYaml
            return {key.value: _meant(value) for key, value in node.value}
        case _:
            raise DifferingYaml


def _differs(text: str, read: Callable[[str], object] = plain_value) -> str | None:
    """Return how a text read by lines differs from PyYAML's result, in C or in Python, or None."""
    result = read(text)
    if result is OTHER:
        return None
    for loader in (yaml.CSafeLoader, yaml.SafeLoader):
        try:
            node = yaml.compose(text, Loader=loader)
            meant = None if node is None else _meant(node)
        except (yaml.YAMLError, DifferingYaml) as error:
            return f"{text!r}: {result!r} instead of {type(error).__name__}"
        if repr(result) != repr(meant):
            return f"{text!r}: {result!r} instead of {meant!r}"
    return None


@settings(max_examples=examples(40, fresh=400), deadline=None)
@given(DUMPED, EDITS)
def test_dumped_and_edited_documents_are_read_like_pyyaml_or_not_at_all(
    text: str, edits: list[tuple[int, int, str]]
) -> None:
    """The documents are written by PyYAML; a few characters of each are changed."""
    assert _differs(text) is None
    assert _differs(_edited(text, edits)) is None


@settings(max_examples=examples(120, fresh=1200), deadline=None)
@given(st.text(ALPHABET, max_size=40))
def test_hostile_text_is_read_like_pyyaml_or_not_at_all(text: str) -> None:
    """The text consists of characters that have a meaning in YAML."""
    assert _differs(text) is None
    assert _differs(f"a:\n  {text}") is None
    assert _differs(f"a: {text}\nb: c") is None


SHORT = "a:- #\n'\"~["
LINE_OF_THREE = [
    *("a:", "b:", "  a:", "  b:", "- a", "  - a", "-", "- a:", "  - b: c", "    d: e", "a: b", "  c: d"),
    *(" e: f", "- - a", "  x", "# c", "", "  # c", "a: []", "a: {}", "a: 'b", "a: |", "---", "  -", "a:b"),
]


def _every(read: Callable[[str], object] = plain_value) -> str | None:
    """Read all texts of up to five characters, and of three lines of a set; return the first difference."""
    texts = itertools.chain(
        ("".join(item) for length in range(1, 6) for item in itertools.product(SHORT, repeat=length)),
        ("\n".join(item) for item in itertools.product(LINE_OF_THREE, repeat=3)),
    )
    return next((result for text in texts if (result := _differs(text, read)) is not None), None)


def test_all_short_texts_are_read_like_pyyaml_or_not_at_all() -> None:
    """The texts are enumerated completely and not sampled."""
    assert _every() is None


def _careless(where: str, instead: object) -> Callable[[str], object]:
    """Return a reader without one of its precautions."""

    def read(text: str) -> object:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(yaml_lines, where, instead)
            yaml_lines._line.cache_clear()
            try:
                return plain_value(text)
            finally:
                yaml_lines._line.cache_clear()

    return read


def _without(part: str) -> re.Pattern[str]:
    pattern = yaml_lines._LINE.pattern
    assert part in pattern
    return re.compile(pattern.replace(part, ""), re.VERBOSE | re.ASCII)


@pytest.mark.parametrize(
    ("where", "instead", "seen"),
    [
        ("_LINE", _without(r"(?=\ |\Z)"), "a:b"),
        ("_LINE", _without(r"(?=[!-~])"), "a: b:"),
        ("_NO_CONTENT", re.compile(r" *(?:#.*|-)?"), "a:\n  b: c\n-"),
        ("plain_scalar", str, "a: 1"),
    ],
)
def test_reader_without_a_precaution_differs_from_pyyaml(where: str, instead: object, seen: str) -> None:
    """Negative control: the comparison above finds each missing precaution."""
    assert _differs(seen) is None
    assert _differs(seen, _careless(where, instead)) is not None


def test_plainly_dumped_documents_are_read_by_lines() -> None:
    """Control of the tests above: a reader that reads nothing would never differ."""
    dice = random.Random(1)  # noqa: S311 - dice
    result = []
    for _ in range(200):
        names = [f"name-{dice.randrange(100)}" for _ in range(4)]
        tree = {
            "kind": "Service",
            "spec": {name: [{name: dice.choice((1, True, None, name))}] for name in names},
        }
        result.append(plain_value(yaml.safe_dump(tree)) == tree)
    assert all(result)
