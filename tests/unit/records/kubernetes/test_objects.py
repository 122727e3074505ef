"""Tests of the objects of records: each key has a name of its own, and damaged objects are no records."""

import copy
import re
from typing import Any, Final

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from meshwright.records.contract import Record, Revision
from meshwright.records.key import Key, key_of
from meshwright.records.kubernetes.definition import DEFINITION, RECORDS
from meshwright.records.kubernetes.objects import (
    UnreadableObjectError,
    name_of,
    object_of,
    patch_of,
    record_of,
    selector_of,
)
from tests.tools.hypothesis_profiles import examples

CART: Final = key_of("proxies", "shop", "cart", "9f0c")
STORED: Final[dict[str, Any]] = {
    "apiVersion": "state.meshwright.dev/v1alpha1",
    "kind": "Record",
    "metadata": {
        "name": "proxies.shop.cart.9f0c",
        "resourceVersion": "77",
        "labels": {"state.meshwright.dev/first-word": "proxies"},
    },
    "spec": {"key": "proxies/shop/cart/9f0c", "content": "AP9zZWNyZXQ=", "write": "5d0c7e1a"},
}
CONTENT: Final = b"\x00\xffsecret"

SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""The API server's rule for names of objects, which are 253 characters long at most."""
LABEL_VALUE: Final = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
"""The API server's rule for values of labels, which are 63 characters long at most."""

_ENDS: Final = st.sampled_from("ab0A")
WORD: Final = (
    _ENDS
    | st.tuples(_ENDS, st.text("ab0A._-", max_size=2), _ENDS).map("".join)
    | st.sampled_from(["sha256", "a" * 63, "a" * 64, "a" * 126, "a" * 253])
)
"""Words of few characters, so that keys often resemble each other."""
KEYS: Final = st.lists(WORD, min_size=1, max_size=4).map(lambda words: key_of(*words))


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("proxies/shop/cart/9f0c", r"proxies\.shop\.cart\.9f0c"),
        ("authority", "authority"),
        ("a/" + "b" * 251, r"a\.b{251}"),
        ("a/" + "b" * 252, r"sha256\.[0-9a-f]{64}"),
        ("services/shop/a.b", r"sha256\.[0-9a-f]{64}"),
        ("tokens/4F1C", r"sha256\.[0-9a-f]{64}"),
    ],
)
def test_readable_names_are_the_words(key: str, name: str) -> None:
    """A person finds the object of a proxy by the proxy's name; other keys are in the column of keys."""
    assert re.fullmatch(name, name_of(Key(key)))


@given(KEYS, KEYS)
@example(Key("a/b"), Key("a.b"))
@example(Key("A"), Key("a"))
@example(Key("sha256/" + "0" * 64), Key("a_b"))
@settings(max_examples=examples(100))
def test_different_keys_have_different_names(key: Key, other: Key) -> None:
    """Each name is one that the API server accepts, and belongs to one key."""
    for item in (key, other):
        name = name_of(item)
        assert SUBDOMAIN.fullmatch(name)
        assert len(name) <= 253
    assert (name_of(key) == name_of(other)) is (key == other)


@given(KEYS)
@settings(max_examples=examples(40))
def test_hashed_names_are_no_names_of_words(key: Key) -> None:
    """A key cannot be written so that its words are the hash of another one."""
    hashed = name_of(key)
    assume(hashed.startswith("sha256."))
    assert name_of(key_of(*hashed.split("."))) != hashed


@given(KEYS, KEYS)
@settings(max_examples=examples(40))
def test_label_selects_all_records_within_a_prefix(key: Key, prefix: Key) -> None:
    """The value is one that the API server accepts; a long first word is hashed."""
    labels = object_of(Key(f"{prefix}/{key}"), b"", "w")["metadata"]["labels"]
    [(label, value)] = labels.items()
    assert selector_of(prefix) == f"{label}={value}"
    assert LABEL_VALUE.fullmatch(value)
    assert len(value) <= 63


def test_record_comes_back_from_its_object() -> None:
    """The stored object has the key, the content in base64, and the label of the first word."""
    created = object_of(CART, CONTENT, "5d0c7e1a")
    stored = copy.deepcopy(STORED)
    del stored["metadata"]["resourceVersion"]
    assert created == stored
    assert record_of(STORED) == Record(CART, CONTENT, Revision("77"))


def test_replacement_is_compared_and_always_a_change() -> None:
    """The patch names the revision, and differs from an earlier patch with the same content."""
    assert patch_of(CONTENT, Revision("77"), "w1") == {
        "metadata": {"resourceVersion": "77", "managedFields": [{}]},
        "spec": {"content": "AP9zZWNyZXQ=", "write": "w1"},
    }
    assert patch_of(CONTENT, Revision("77"), "w2") != patch_of(CONTENT, Revision("77"), "w1")


@given(KEYS, st.binary(max_size=50))
@settings(max_examples=examples(50))
def test_any_record_comes_back(key: Key, content: bytes) -> None:
    """Whatever the key and the content are."""
    raw = object_of(key, content, "w")
    raw["metadata"]["resourceVersion"] = "1"
    assert record_of(raw) == Record(key, content, Revision("1"))


@pytest.mark.parametrize(
    ("place", "values", "sentence"),
    [
        ("metadata", (None, [], "x"), "records.state.meshwright.dev: an object lacks metadata or spec"),
        ("spec", (None, [], "x"), "records.state.meshwright.dev: an object lacks metadata or spec"),
        (
            "spec.key",
            (None, 7, "", "proxies/shop/cart/other", "proxies/shop/cart/9F0C", "a//b", "../x"),
            "records.state.meshwright.dev proxies.shop.cart.9f0c: spec.key: expected the key of this object",
        ),
        (
            "metadata.resourceVersion",
            (None, "", 7),
            "records.state.meshwright.dev proxies.shop.cart.9f0c: the object lacks a resourceVersion",
        ),
        (
            "spec.content",
            (None, 7, "c2VjcmV0!", "c2VjcmV", "s\u00e9cret", ["secret"]),
            "records.state.meshwright.dev proxies.shop.cart.9f0c: spec.content: expected base64",
        ),
    ],
)
def test_damaged_object_is_no_record(place: str, values: tuple[object, ...], sentence: str) -> None:
    """The sentence names object and field, and has no part of the content."""
    for value in values:
        raw = copy.deepcopy(STORED)
        *outer, name = place.split(".")
        at = raw[outer[0]] if outer else raw
        at[name] = value
        with pytest.raises(UnreadableObjectError) as caught:
            record_of(raw)
        assert str(caught.value) == sentence
        assert caught.value.__cause__ is None


def test_object_of_another_key_is_no_record() -> None:
    """A record that was copied to another name by hand does not count as that record."""
    raw = copy.deepcopy(STORED)
    raw["metadata"]["name"] = "proxies.shop.cart.other"
    with pytest.raises(UnreadableObjectError, match=r"cart\.other: spec\.key: expected the key"):
        record_of(raw)


def test_definition_is_of_the_requested_kind() -> None:
    """The definition serves the group, the version and the plural that the store asks for."""
    spec = DEFINITION["spec"]
    assert DEFINITION["metadata"]["name"] == "records.state.meshwright.dev"
    assert (spec["group"], spec["names"]["plural"], spec["names"]["kind"], spec["scope"]) == (
        RECORDS.group,
        RECORDS.plural,
        RECORDS.kind,
        "Namespaced",
    )
    [version] = spec["versions"]
    assert (version["name"], version["served"], version["storage"]) == (RECORDS.version, True, True)
    assert [column["name"] for column in version["additionalPrinterColumns"]] == ["Key", "Writes", "Age"]
    content = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["content"]
    assert set(content) == {"type", "description"}, "a rule would have the API server quote the content"
