"""Tests of secrets that are encrypted for one record of a shared store."""

import base64

import pytest

from certs.state.sealing import RecordSeal, new_data_key

SECRET = b"-----BEGIN PRIVATE KEY-----\nMIGH\n-----END PRIVATE KEY-----\n"


def test_secret_can_be_read_only_in_its_own_record_and_with_its_data_key() -> None:
    """The reason names the record, and no part of the secret."""
    data_key = new_data_key()
    seal, again, stranger = RecordSeal(data_key), RecordSeal(data_key), RecordSeal(new_data_key())
    text = seal.closed(SECRET, "services/shop/cart")
    assert again.opened(text, "services/shop/cart") == SECRET
    for reader, key in ((seal, "services/shop/store"), (seal, "authority"), (stranger, "services/shop/cart")):
        with pytest.raises(ValueError, match=f"damaged, copied from another record than {key}, or") as error:
            reader.opened(text, key)
        assert (error.value.__cause__, error.value.__suppress_context__) == (None, True)


def test_no_changed_byte_is_taken() -> None:
    """This holds for the nonce, the secret and its tag, and for a text that is cut off."""
    seal = RecordSeal(new_data_key())
    content = base64.b64decode(seal.closed(SECRET, "authority"))
    broken = [content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :] for at in range(len(content))]
    texts = [base64.b64encode(item).decode() for item in (*broken, content[:-1], content[:5], b"")]
    for text in (*texts, "no base64"):
        with pytest.raises(ValueError, match="the encrypted part is damaged"):
            seal.opened(text, "authority")


def test_equal_secrets_have_different_texts() -> None:
    """A reader of the store does not see that two services have one key."""
    seal = RecordSeal(new_data_key())
    assert len({seal.closed(SECRET, "authority") for _ in range(8)}) == 8


def test_data_key_is_not_in_a_repr() -> None:
    """A seal may end up in a log."""
    assert (repr(RecordSeal(new_data_key())), str(RecordSeal(new_data_key()))) == (
        "RecordSeal(<hidden>)",
    ) * 2
