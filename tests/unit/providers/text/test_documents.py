"""Tests of splitting text into documents: neighbours, line numbers, limits and scalars."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.providers.text import yaml_value
from meshwright.providers.text.documents import Document, _chunks, documents
from meshwright.providers.text.faults import Fault
from meshwright.specs.codes import Code


def test_documents_have_the_line_numbers_of_the_file() -> None:
    """Comments, directives and empty documents are not counted as documents."""
    text = "# head\n%YAML 1.2\n---\na: 1\n---\n# nothing\n---\n\n- b\n...\n--- {c: 2}\n"
    assert documents(text) == (Document(1, 4, {"a": 1}), Document(2, 9, ["b"]), Document(3, 11, {"c": 2}))


def test_bad_document_does_not_affect_its_neighbours() -> None:
    """The fault has its line in the file, and the part before it is kept to identify the object."""
    text = "a: 1\n---\nkind: X\nspec: [1\nb: 2\n---\nc: 3\n"
    first, bad, last = documents(text)
    assert (first.value, last.value, last.number) == ({"a": 1}, {"c": 3}, 3)
    assert bad.value == {"kind": "X"}
    assert [(fault.code, fault.line) for fault in bad.faults] == [(Code.BAD_SYNTAX, 5)]


def test_duplicate_key_is_a_fault() -> None:
    """This holds for nested mappings and for JSON; the first value is kept."""
    text = "must have each key only once; 'b' occurs twice"
    assert documents("a:\n  b: 1\n  b: 2\n") == (
        Document(1, 1, {"a": {"b": 1}}, (Fault(Code.DUPLICATE_KEY, text, 3),)),
    )
    assert documents('\n{"a": {"b": 1, "b": 2}}', as_json=True) == (
        Document(1, 2, {"a": {"b": 1}}, (Fault(Code.DUPLICATE_KEY, text, 2),)),
    )


def test_scalars_are_read_like_kubernetes_does() -> None:
    """Numbers, booleans and null are typed; dates and 12:30 stay text, and keys are text."""
    text = (
        "[~, null, '', true, No, 12, 0x1f, 0o17, 012, 1.5, 1e3, .5, 2026-01-02, 12:30, \"7\", 1_000, !!str 5]"
    )
    assert documents(text)[0].value == [
        *(None, None, "", True, False, 12, 31, 15, 12.0, 1.5, 1000.0, 0.5),
        *("2026-01-02", "12:30", "7", "1_000", "5"),
    ]
    assert documents("80: a\non: b\n~: c\n")[0].value == {"80": "a", "on": "b", "~": "c"}


def test_few_aliases_are_read_and_merges_do_not_override() -> None:
    """A merged value is used only if the mapping does not set the key itself."""
    text = "base: &b {x: 1, y: 2}\nuse: *b\nmore: {<<: *b, y: 3}\n"
    assert documents(text)[0] == Document(
        1, 1, {"base": {"x": 1, "y": 2}, "use": {"x": 1, "y": 2}, "more": {"y": 3, "x": 1}}
    )


FEWER_NODES = 5_000
_BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (_BOMB, Code.TOO_LARGE),
        ("a: &a [x]\nb: [" + "*a, " * 101 + "]", Code.TOO_LARGE),
        ("[" * 1000, Code.TOO_LARGE),
        ("[" + "x," * FEWER_NODES + "]", Code.TOO_LARGE),
        ("&a [*a]", Code.BAD_SYNTAX),
        ("*nobody", Code.BAD_SYNTAX),
        ("{[a]: b}", Code.BAD_SYNTAX),
        ("!!python/object:os.system {a: b}", Code.BAD_SYNTAX),
        ("!run ls", Code.BAD_SYNTAX),
        ("a: b: c", Code.BAD_SYNTAX),
        ("a: \x00", Code.BAD_SYNTAX),
        ("<<: 7", Code.BAD_SYNTAX),
    ],
)
def test_unsafe_or_broken_yaml_is_a_fault(text: str, code: Code, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsing raises no exception and expands no bomb, and the first fault has the cause."""
    monkeypatch.setattr(yaml_value, "MAX_NODES", FEWER_NODES)
    (document,) = documents(text)
    assert document.faults[0].code == code


@pytest.mark.parametrize("text", ["{", "[1e", '{"a": NaN}', "[" * 100_000, "[" + "1" * 5000 + "]"])
def test_broken_json_is_a_fault(text: str) -> None:
    """JSON has its own limits for depth and numbers."""
    (document,) = documents(text, as_json=True)
    assert document.faults[0].code in (Code.BAD_SYNTAX, Code.TOO_LARGE)


@pytest.mark.parametrize(
    "text", [r'{"a": ["\ud800"]}', r'{"\uDFFF": 1}', r'["\ude00\ud83d"]', r'{"a": {"b": "x\ud83dx"}}']
)
def test_lone_surrogate_in_json_is_a_fault(text: str) -> None:
    """No encoding can send it on, so it is refused as in YAML."""
    (document,) = documents(text, as_json=True)
    assert [fault.code for fault in document.faults] == [Code.BAD_SYNTAX]
    assert document.value is None


def test_escaped_surrogate_pair_is_one_character() -> None:
    """An escaped backslash before `ud800` starts no escape."""
    (document,) = documents(r'{"a": "\ud83d\ude00", "b": "\\ud800", "c": "\u0000"}', as_json=True)
    assert (document.value, document.faults) == ({"a": "\U0001f600", "b": r"\ud800", "c": "\0"}, ())


def test_faults_never_quote_the_document() -> None:
    """The document may be a broken Secret, and faults are logged."""
    (document,) = documents("kind: Secret\nstringData:\n  password: hunter2: x\n")
    assert all("hunter2" not in fault.expected for fault in document.faults)


def _split(text: str) -> list[tuple[int, str]]:
    """Return the documents line by line: the first line number of their content, and their text."""
    parts: list[list[tuple[int, str]]] = [[]]
    for number, whole in enumerate(re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text), start=1):
        line = whole
        if re.match(r"(---|\.\.\.)(\s|$)", whole):
            parts.append([])
            line = f"   {whole[3:]}" if whole.startswith("---") else "\n"
        if parts[-1] or (line.strip() and not line.lstrip().startswith("#") and line[0] != "%"):
            parts[-1].append((number, line))
    return [(part[0][0], "".join(line for _, line in part)) for part in parts if part]


@given(
    st.lists(
        st.sampled_from(
            [
                *(
                    "---",
                    "...",
                    "\n",
                    "\r",
                    "\r\n",
                    "a",
                    "b: c",
                    " ",
                    "#",
                    "%",
                    "\t",
                    "\x0b",
                    "\x85",
                    "--- x",
                    "---\n",
                )
            ]
        )
    ).map("".join)
)
def test_documents_are_split_at_marker_lines(text: str) -> None:
    """This holds for all line endings and for any text beside a marker."""
    assert list(_chunks(text)) == _split(text)


def test_json_is_detected_in_any_file() -> None:
    """JSON has escapes that YAML does not have; text that only begins like JSON is YAML's flow style."""
    text = r'{"a": "\ud83d\ude00", "b": {"c": 1, "c": 2}}'
    assert documents(f"\n{text}\n") == documents(f"\n{text}\n", as_json=True)
    (document,) = documents(r'{"a": "\ud83d\ude00"}')
    assert (document.value, document.faults) == ({"a": "\U0001f600"}, ())
    flow = documents("{a: 1, 'b': [2]}\n---\n{\"c\": 3}\n---\n{\n")
    assert [document.value for document in flow[:2]] == [{"a": 1, "b": [2]}, {"c": 3}]
    assert [fault.code for fault in flow[2].faults] == ["MW1101"]
