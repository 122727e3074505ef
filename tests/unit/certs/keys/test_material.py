"""Tests of private keys, which no output, copy or pickle may contain."""

import copy
import dataclasses
import pickle
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from certs.contract import Names, Usage
from certs.issuers.authority import CertificateAuthority
from certs.keys.material import PrivateKey, ProxyCertificate, ServerCertificate, ServiceCertificate
from certs.keys.pair import Pair, issue_pair
from certs.ledger.contract import Ledger
from certs.lifetimes import VALIDITY
from certs.manager import CertificateManager
from certs.proxy import issue_proxy
from certs.server import ads_server_certificate
from certs.state.pair_files import PairFiles
from meshwright.mesh.identity import ProxyName, ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName

SECRET = b"-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"
_IDENTITY = ServiceIdentity(Namespace("default"), ServiceAccountName("shop"))
Holder = ServiceCertificate | ProxyCertificate | ServerCertificate | Pair
HIDDEN = "PrivateKey(<hidden>)"


def test_only_reveal_returns_the_content_of_a_key() -> None:
    """The results of repr, str, format and %-formatting hide it."""
    key = PrivateKey(SECRET)
    assert [repr(key), str(key), f"{key}", f"{key!r}", f"{key:>5}", "%s" % key] == [HIDDEN] * 6  # noqa: UP031 - on purpose
    assert key.reveal() == SECRET


@pytest.mark.parametrize("leave", [pickle.dumps, copy.copy, copy.deepcopy])
def test_key_cannot_be_pickled_or_copied(leave: Callable[[object], object]) -> None:
    """A serialised object could carry the key elsewhere."""
    with pytest.raises(TypeError, match=r"^a PrivateKey is not pickled or copied$"):
        leave(PrivateKey(SECRET))


def test_key_is_an_immutable_value() -> None:
    """Keys compare by content and can be in a set."""
    key = PrivateKey(SECRET)
    assert {key, PrivateKey(SECRET)} == {key}
    assert key != PrivateKey(b"other")
    assert key != SECRET
    with pytest.raises(AttributeError):
        key._pem = b"other"
    with pytest.raises(AttributeError):
        del key._pem
    assert not hasattr(key, "__dict__")


def test_repr_of_certificates_contains_no_part_of_a_key(
    authority: CertificateAuthority, ledger: Ledger, state: Path, now: datetime
) -> None:
    """No repr of an object with a key contains 12 characters of it, and `asdict` raises an error."""
    name = ProxyName.parse("u1.shop.default")
    manager = CertificateManager(authority, PairFiles(state), timedelta(hours=24), lambda: 0.0)
    service = manager.ensure(_IDENTITY, ("shop.default",), now)
    values: list[Holder] = [
        service,
        issue_proxy(authority, ledger, name, VALIDITY, now),
        ads_server_certificate(authority, PairFiles(state), now),
        issue_pair(authority, Usage.PROXY, Names(str(name)), VALIDITY, now),
    ]
    texts = [repr(value) for value in (*values, manager, authority)]
    for value in values:
        secret = "".join(value.key.reveal().decode().splitlines()[1:-1])
        pieces = {secret[at : at + 12] for at in range(len(secret) - 12)}
        assert [text for text in texts if any(piece in text for piece in pieces)] == []
        assert not any("BEGIN" in text for text in texts)
        with pytest.raises(TypeError):
            dataclasses.asdict(value)
