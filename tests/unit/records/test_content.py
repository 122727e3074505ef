"""Tests of the form of contents: equal bytes for equal contents, and sentences for damaged ones."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshwright.records.content import NEWEST, Content, UnreadableContentError
from meshwright.records.contract import Epoch, ReplicaId
from tests.tools.hypothesis_profiles import examples

A = ReplicaId("a-5fd8")
STORED = b'{"by":"a-5fd8","count":7,"epoch":3,"fields":{"names":["\xc3\xa9"],"uses":3},"form":1}'
WHOLE = {"form": 1, "count": 1, "epoch": 0, "by": "a", "fields": {}}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)
FIELDS = st.dictionaries(st.text(), JSON, max_size=4)


def test_content_has_one_stored_form() -> None:
    """The bytes are sorted JSON without spaces, and are read back."""
    content = Content({"uses": 3, "names": ["é"]}, A, 7, Epoch(3))
    assert content.encode() == STORED
    assert Content.decode(STORED) == content


@given(FIELDS, st.integers(1), st.integers(0), st.text(min_size=1))
@settings(max_examples=examples(40, fresh=400))
def test_content_comes_back(fields: dict[str, Any], count: int, epoch: int, by: str) -> None:
    """Any fields of JSON are stored without a loss, and their order does not matter."""
    content = Content(fields, ReplicaId(by), count, Epoch(epoch))
    decoded = Content.decode(content.encode())
    assert decoded == content
    assert json.dumps(decoded.fields) == json.dumps(content.fields, sort_keys=True), "1 is not 1.0"
    turned = Content(dict(reversed(fields.items())), ReplicaId(by), count, Epoch(epoch))
    assert turned.encode() == content.encode()


@pytest.mark.parametrize(
    ("stored", "sentence"),
    [
        (b"", "the content is not JSON"),
        (b"secret", "the content is not JSON"),
        (b"\xff\xfe\xfd", "the content is not JSON"),
        (b"[" * 100_000, "the content is not JSON"),
        (STORED.replace(b"3", b"NaN"), "the content is not JSON"),
        (STORED.replace(b"3", b"-Infinity"), "the content is not JSON"),
        (STORED.replace(b":3}", b":1e999}"), "the content is not JSON"),
        (STORED.replace(b'"\xc3\xa9"', b'"\\ud800"'), "the content is not JSON"),
        (STORED.replace(b"uses", b"\\udfff"), "the content is not JSON"),
        (b'["secret"]', "the content is not a JSON object"),
        (b"null", "the content is not a JSON object"),
    ],
)
def test_what_is_no_content_is_refused(stored: bytes, sentence: str) -> None:
    """The sentence has no part of the content, which may be a secret."""
    with pytest.raises(UnreadableContentError) as caught:
        Content.decode(stored)
    assert str(caught.value) == sentence
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("word", "values", "sentence"),
    [
        ("form", (None, "1", 0, 1.0, True), "form: expected an integer from 1"),
        (
            "form",
            (NEWEST + 1,),
            "form 2 is newer than form 1, the newest of this version: upgrade this server",
        ),
        ("count", (None, 0, -1, "7", 7.5, True), "count: expected an integer from 1"),
        ("epoch", (None, -1, "0", 0.0, False), "epoch: expected an integer from 0"),
        ("by", (None, "", 7, ["a"]), "by: expected the name of a replica"),
        ("fields", (None, [], "secret", 7), "fields: expected a JSON object"),
    ],
)
def test_wrong_word_is_named(word: str, values: tuple[object, ...], sentence: str) -> None:
    """A missing word counts as a wrong one."""
    assert Content.decode(json.dumps(WHOLE).encode()) == Content({}, ReplicaId("a"))
    missing = {name: value for name, value in WHOLE.items() if name != word}
    for value in (*([missing] if None in values else []), *({**WHOLE, word: value} for value in values)):
        with pytest.raises(UnreadableContentError) as caught:
            Content.decode(json.dumps(value).encode())
        assert str(caught.value) == sentence


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", b"bytes", {"a": {1, 2}}])
def test_what_json_cannot_store_is_an_error_of_the_writer(value: object) -> None:
    """The error comes before the write, not at the next reader."""
    with pytest.raises((TypeError, ValueError)):
        Content({"field": value}, A).encode()
