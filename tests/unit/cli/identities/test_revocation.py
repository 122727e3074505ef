"""Revoking by a proxy's name, where not every one of its certificates can be written down as revoked."""

from pathlib import Path

import pytest

from meshwright.cli.errors import IssuingError, NegativeAnswer
from meshwright.cli.identities import revocation as revoking
from meshwright.cli.identities.revocation import RevokedCertificate, revoke_all

NAME = "u1.shop.default"


class Server:
    """Has certificates in force; of those in `full` it cannot write that they are revoked."""

    def __init__(self, *in_force: str) -> None:
        self.in_force = list(in_force)
        self.full: set[str] = set()
        self.tried = list[str]()

    def listed(self, *_: object, **__: object) -> object:
        """Return all of them."""
        entries = [{"cn": NAME, "serial": each, "in_force": True} for each in self.in_force]
        return {"proxy_certificates": [*entries, {"cn": "u2.shop.default", "serial": "ff", "in_force": True}]}

    def revoke(self, state: Path, serial: str, *_: object, **__: object) -> RevokedCertificate:
        """Revoke one."""
        self.tried.append(serial)
        if serial in self.full:
            raise IssuingError(f"{serial} is not kept")
        self.in_force.remove(serial)
        return RevokedCertificate(NAME, serial)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    """Return one with three certificates in force of a proxy."""
    made = Server("1a", "2a", "3a")
    monkeypatch.setattr(revoking, "listed", made.listed)
    monkeypatch.setattr(revoking, "revoke", made.revoke)
    return made


def test_one_that_cannot_be_written_keeps_no_other_one_in_force(server: Server, tmp_path: Path) -> None:
    """Each is tried, once; then it is an error all the same."""
    server.full = {"1a"}
    with pytest.raises(IssuingError, match="1a is not kept"):
        revoke_all(tmp_path, NAME, "cluster.local")
    assert (server.tried, server.in_force) == (["1a", "2a", "3a"], ["1a"])


def test_all_are_revoked_and_then_there_is_none(server: Server, tmp_path: Path) -> None:
    """Nobody else's."""
    assert [each.serial for each in revoke_all(tmp_path, NAME, "cluster.local")] == ["1a", "2a", "3a"]
    with pytest.raises(NegativeAnswer, match="has no valid certificate"):
        revoke_all(tmp_path, NAME, "cluster.local")
