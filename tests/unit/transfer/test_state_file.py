"""Tests of the sealed file with the state of a mesh, which may be damaged, foreign or newer."""

import json
from collections.abc import Callable
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certs.errors import StateError
from meshwright.transfer.state_file import Header, in_words, opened, read_header, sealed
from tests.tools.hypothesis_profiles import examples
from tests.unit.transfer.meshes import DOMAIN, NOW, cheap_passphrases, pair, small_mesh

PASSPHRASE: Final = b"correct horse battery"


_NEWER: Final = "the file was written by a newer version of Meshwright"
_DAMAGED: Final = "the header is damaged: field"
_TRUNCATED: Final = "the file is damaged or was truncated: use another copy"
_FOREIGN: Final = "the file is not an export of `meshwright state export`"


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Derive keys in no time, because the cost is a parameter in the file."""
    cheap_passphrases(monkeypatch)


@pytest.fixture
def text(_cheap: None) -> str:
    """Return the text of a file."""
    return sealed(small_mesh(), Header.of(small_mesh(), "0.2.0", DOMAIN, NOW), PASSPHRASE)


def test_file_has_a_header_for_people_and_all_else_sealed(text: str) -> None:
    """The header has no secret, and the rest is nothing but base64."""
    first, rest, end = text.split("\n")
    document = json.loads(first)
    del document["key"]
    assert document == {
        "format": "meshwright-state",
        "form": 1,
        "version": "0.2.0",
        "trust_domain": "mesh.example",
        "root": small_mesh().root,
        "exported_at": "2031-05-06T07:08:09+00:00",
        "counts": {"proxy_certificates": 2, "revoked": 1, "service_certificates": 1, "join_tokens": 1},
    }
    assert (end, json.loads(first)["key"]["kdf"]) == ("", "scrypt")
    lines = pair("cart").key.reveal().decode().splitlines()
    assert not [line for line in lines[1:-1] if line in rest]
    header, mesh = opened(text, PASSPHRASE)
    assert (header, mesh) == (Header.of(small_mesh(), "0.2.0", DOMAIN, NOW), small_mesh())
    assert read_header(text) == header
    assert in_words(header.counts) == "2 proxy certificates (1 revoked), 1 service certificate, 1 join token"


def test_wrong_passphrase_is_refused(text: str) -> None:
    """The sentence does not repeat the passphrase."""
    with pytest.raises(StateError) as refused:
        opened(text, b"wrong horse battery")
    assert str(refused.value) == (
        "the passphrase is wrong, or the header is damaged: use the passphrase of the export"
    )


def _with(**facts: object) -> Callable[[str], str]:
    def change(text: str) -> str:
        first, _, rest = text.partition("\n")
        return f"{json.dumps(json.loads(first) | facts)}\n{rest}"

    return change


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda _: "", _FOREIGN),
        (lambda _: "-----BEGIN CERTIFICATE-----\n", _FOREIGN),
        (lambda _: '{"a": 1}\n', _FOREIGN),
        (lambda _: "[" * 100_000, _FOREIGN),
        (lambda _: "[" * 10_000, _FOREIGN),
        (_with(format="other"), _FOREIGN),
        (
            _with(form=2, version="9.0"),
            f"{_NEWER} (9.0): it has form 2, and this version reads forms up to 1; use the newer version",
        ),
        (_with(form="1"), f"{_DAMAGED} form must be an integer from 1; use another copy"),
        (_with(root=None), None),
        (
            _with(counts=[]),
            f"{_DAMAGED} counts is []: 'list' object has no attribute 'items'; use another copy",
        ),
        (_with(key=None), f"{_DAMAGED} key is not an encrypted data key; use another copy"),
        (
            _with(root="ab"),
            _TRUNCATED,
        ),
        (lambda text: text[: text.index("\n")], _TRUNCATED),
        (lambda text: text[:-10], _TRUNCATED),
        (lambda text: f"{text}x", _TRUNCATED),
    ],
)
def test_other_file_is_refused_with_a_reason(
    text: str, change: Callable[[str], str], sentence: str | None
) -> None:
    """Empty, foreign, newer, changed and truncated files."""
    with pytest.raises(StateError) as refused:
        opened(change(text), PASSPHRASE)
    assert sentence is None or str(refused.value) == sentence


@given(position=st.integers(0), byte=st.characters(codec="ascii"))
@settings(max_examples=examples(100), deadline=None)
def test_changed_character_is_noticed(position: int, byte: str) -> None:
    """Wherever the character is."""
    value = small_mesh()
    text = sealed(value, Header.of(value, "0.2.0", DOMAIN, NOW), PASSPHRASE)
    at = position % len(text)
    changed = text[:at] + byte + text[at + 1 :]
    if changed != text:
        with pytest.raises(StateError):
            opened(changed, PASSPHRASE)
