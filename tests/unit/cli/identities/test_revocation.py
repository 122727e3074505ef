"""Tests of revocation by a proxy's name, if some certificates cannot be recorded as revoked."""

from pathlib import Path

import pytest

from meshwright.cli.errors import IssuingError, NegativeAnswer
from meshwright.cli.identities import revocation as revoking
from meshwright.cli.identities.revocation import RevokedCertificate, revoke_all

NAME = "u1.shop.default"


class Server:
    """Fake server with valid certificates; the revocation of those in `full` fails."""

    def __init__(self, *in_force: str) -> None:
        self.in_force = list(in_force)
        self.full: set[str] = set()
        self.tried = list[str]()

    def listed(self, *_: object, **__: object) -> object:
        """Return all certificates."""
        entries = [{"cn": NAME, "serial": item, "in_force": True} for item in self.in_force]
        return {"proxy_certificates": [*entries, {"cn": "u2.shop.default", "serial": "ff", "in_force": True}]}

    def revoke(self, state: Path, serial: str, *_: object, **__: object) -> RevokedCertificate:
        """Revoke one certificate, or raise IssuingError."""
        self.tried.append(serial)
        if serial in self.full:
            raise IssuingError(f"{serial} is not kept")
        self.in_force.remove(serial)
        return RevokedCertificate(NAME, serial)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    """Return a fake server with three valid certificates of a proxy."""
    made = Server("1a", "2a", "3a")
    monkeypatch.setattr(revoking, "listed", made.listed)
    monkeypatch.setattr(revoking, "revoke", made.revoke)
    return made


def test_failed_revocation_does_not_stop_the_others(server: Server, tmp_path: Path) -> None:
    """Each revocation is tried once, and the error is raised at the end."""
    server.full = {"1a"}
    with pytest.raises(IssuingError, match="1a is not kept"):
        revoke_all(tmp_path, NAME, "cluster.local")
    assert (server.tried, server.in_force) == (["1a", "2a", "3a"], ["1a"])


def test_all_certificates_of_a_proxy_are_revoked(server: Server, tmp_path: Path) -> None:
    """Only this proxy's certificates are revoked, and a second attempt finds none."""
    assert [
        revoked_certificate.serial for revoked_certificate in revoke_all(tmp_path, NAME, "cluster.local")
    ] == ["1a", "2a", "3a"]
    with pytest.raises(NegativeAnswer, match="has no valid certificate"):
        revoke_all(tmp_path, NAME, "cluster.local")
