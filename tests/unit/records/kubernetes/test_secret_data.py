"""Tests of records as the data of one Secret."""

import base64
from typing import Any

import pytest

from meshwright.records.contract import RecordsError
from meshwright.records.key import key_of
from meshwright.records.kubernetes.secret_data import (
    WRITES,
    data_name,
    new_secret,
    patch_of_secret,
    records_in,
)

SEAL = key_of("seal")
AUTHORITY = key_of("authority")


def _patched(raw: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Return a Secret after a merge patch of its data and annotations (RFC 7386)."""
    data = {**raw["data"], **patch["data"]}
    metadata = {**raw["metadata"], **patch["metadata"]}
    metadata["annotations"] = {**raw["metadata"]["annotations"], **patch["metadata"]["annotations"]}
    return {**raw, "metadata": metadata, "data": {name: text for name, text in data.items() if text}}


def test_each_record_has_a_revision_of_its_own() -> None:
    """A write of one record leaves the revision of the other; an equal content is a write as well."""
    secret = new_secret("custody", SEAL, b"one", "w1")
    both = _patched(secret, patch_of_secret(secret, AUTHORITY, b"two", "w2"))
    again = _patched(both, patch_of_secret(both, AUTHORITY, b"two", "w3"))
    removed = _patched(again, patch_of_secret(again, AUTHORITY, None, "w4"))
    assert records_in(secret)[SEAL] == records_in(again)[SEAL] == records_in(removed)[SEAL]
    assert records_in(both)[AUTHORITY].content == records_in(again)[AUTHORITY].content == b"two"
    assert records_in(both)[AUTHORITY].revision != records_in(again)[AUTHORITY].revision
    assert list(records_in(removed)) == [SEAL]


def test_content_that_was_changed_by_hand_has_another_revision() -> None:
    """A server that has read the former content must not overwrite what an administrator restored."""
    secret = new_secret("custody", SEAL, b"one", "w1")
    edited = {**secret, "data": {"seal": base64.b64encode(b"restored").decode()}}
    assert records_in(edited)[SEAL].revision != records_in(secret)[SEAL].revision


@pytest.mark.parametrize("annotation", ["", "[]", "{", '{"seal": 1}', None])
def test_damaged_annotation_loses_no_record(annotation: object) -> None:
    """The content is there, with a revision that every server computes in the same way."""
    secret = new_secret("custody", SEAL, b"one", "w1")
    secret["metadata"]["annotations"] = {WRITES: annotation}
    assert records_in(secret)[SEAL].content == b"one"
    assert records_in(secret) == records_in(secret)


def test_data_of_others_are_no_records() -> None:
    """Names that no key has, and texts that are not base64, are passed over."""
    secret = new_secret("custody", SEAL, b"one", "w1")
    for name in ("tls.crt_", "_x", "a_.", "a__.b_", "a_b", ".x"):
        secret["data"][name] = "eA=="
    secret["data"]["damaged"] = "!"
    assert list(records_in(secret)) == [SEAL]
    assert records_in({"metadata": {}}) == records_in({"data": None}) == {}


def test_names_of_data_are_unique_and_can_be_read_back() -> None:
    """Keys that differ only by a slash or an underscore have different data."""
    keys = [
        key_of(*text.split())
        for text in ("a b c", "a b.c", "a_b c", "a b_c", "a__b", "a_b", "a.b", "a._b", "a_.b", "A b")
    ]
    names = [data_name(key) for key in keys]
    assert len(set(names)) == len(keys)
    for key, name in zip(keys, names, strict=True):
        assert list(records_in({"metadata": {}, "data": {name: "eA=="}})) == [key]
    with pytest.raises(RecordsError, match="too long"):
        data_name(key_of("a" * 253, "b"))
