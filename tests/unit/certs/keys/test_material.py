"""Private keys are hidden from everything that prints, copies or pickles."""

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


def test_a_key_shows_itself_to_reveal_alone() -> None:
    """repr, str, format and %-formatting have the same nothing to say."""
    key = PrivateKey(SECRET)
    assert [repr(key), str(key), f"{key}", f"{key!r}", f"{key:>5}", "%s" % key] == [HIDDEN] * 6  # noqa: UP031 - on purpose
    assert key.reveal() == SECRET


@pytest.mark.parametrize("leave", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_key_is_not_pickled_or_copied(leave: Callable[[object], object]) -> None:
    """No way of serialising objects takes a key along."""
    with pytest.raises(TypeError, match=r"^a PrivateKey is not pickled or copied$"):
        leave(PrivateKey(SECRET))


def test_a_key_is_a_value() -> None:
    """Keys compare by content, can be in a set, and do not change."""
    key = PrivateKey(SECRET)
    assert {key, PrivateKey(SECRET)} == {key}
    assert key != PrivateKey(b"other")
    assert key != SECRET
    with pytest.raises(AttributeError):
        key._pem = b"other"
    with pytest.raises(AttributeError):
        del key._pem
    assert not hasattr(key, "__dict__")


def test_no_public_value_shows_a_key(
    authority: CertificateAuthority, ledger: Ledger, state: Path, now: datetime
) -> None:
    """No repr of anything that holds a key has as much as 12 characters of it, nor does `asdict`."""
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
