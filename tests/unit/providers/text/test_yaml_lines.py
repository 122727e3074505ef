"""Reading by lines is reading by events, quicker: what it does not read the same it does not read."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks.meshes import files
from providers.text import documents as module
from providers.text.documents import documents
from providers.text.yaml_lines import OTHER, plain_value
from providers.text.yaml_value import MAX_DEPTH, MAX_NODES, yaml_value

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


@settings(max_examples=1000)
@given(st.lists(LINES, min_size=1, max_size=8).map("\n".join))
@example("a:\n- b: c\n  d:\n  - e\nf: 1")
@example("a: x\n  b: y")
@example("- a: x\n- b: y\n  a: z")
def test_what_is_read_by_lines_is_read_the_same_by_events(text: str) -> None:
    """To the type of each scalar and the order of keys; and nothing is wrong with it."""
    found = plain_value(text)
    if found is not OTHER:
        value, faults = yaml_value(text, 1)
        assert (repr(found), ()) == (repr(value), faults)


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
def test_what_manifests_are_written_in_is_read_by_lines(text: str, value: object) -> None:
    """Blocks of scalars, with comments; keys are text."""
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
def test_all_else_is_left_to_the_events(text: str) -> None:
    """What is wrong, too much, or only written otherwise."""
    assert plain_value(text) is OTHER


def test_a_list_is_nobody_elses() -> None:
    """Lines are known by heart; what they say may be changed by whoever has it."""
    first, second = plain_value("a: []\nb: {}"), plain_value("a: []\nb: {}")
    assert first == second == {"a": [], "b": {}}
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert first["a"] is not second["a"]
    assert first["b"] is not second["b"]


def test_a_mesh_is_read_by_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its manifests as a tool writes them: no document needs the parser of events."""

    def by_events(text: str, _: int) -> object:
        raise AssertionError(f"read by events: {text}")

    monkeypatch.setattr(module, "yaml_value", by_events)
    found = [each for text in files(20).values() for each in documents(text)]
    assert len(found) == 20 * 9 + 2 + 1
