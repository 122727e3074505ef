"""Tests of a CA in files that was replaced: confirmations by machines, and the server's new certificate."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from certs.custody import AuthorityWithLedger
from certs.errors import StateError
from certs.keys.bundle import TrustBundle
from certs.keys.leaf import is_signed_by_bundle
from certs.state.pair_files import PairFiles
from meshwright.controller.identity.server_tls import ServerTls
from meshwright.controller.issuing.foreign_ca import ForeignAuthorityWatch, patience
from meshwright.enrolment.trust import Confirmation, Confirmations
from tests.unit.certs.roots.test_succeeding_authority import NAME, Scene

BEGUN: Final = datetime(2026, 11, 22, 12, tzinfo=UTC)
DUE: Final = BEGUN + timedelta(days=60)
DAY: Final = 86400


def _confirmed(authority: AuthorityWithLedger, confirmations: Confirmations) -> None:
    """Record that a machine has confirmed the current roots at the time `DUE`."""
    digest = TrustBundle.from_pems([authority.authority.trust_bundle()]).digest
    confirmations.note(NAME, Confirmation(digest, "0a", DUE))


@pytest.mark.parametrize(
    ("every", "after", "said", "is_new"),
    [
        (DAY, timedelta(minutes=50), True, False),  # other machines may not have asked yet
        (DAY, timedelta(hours=2), True, True),
        (DAY, timedelta(hours=2), False, False),
        (DAY, timedelta(days=2), False, False),
        (DAY, timedelta(days=4), False, True),  # the machine is away
        (600, timedelta(hours=2), False, True),
        (DAY * 20, timedelta(days=31), False, True),  # the old certificate has expired
    ],
)
async def test_new_server_certificate_is_shown_once_machines_trust_its_root(
    tmp_path: Path, every: int, after: timedelta, said: bool, is_new: bool
) -> None:
    """The new certificate is shown once machines have confirmed its root.

    A machine without the root could no longer ask for it. The wait ends for machines that are away or whose
    certificates have expired.
    """
    scene, confirmations = Scene(tmp_path, BEGUN), Confirmations()
    first = scene.put("first")
    with scene.open() as authority:
        patient = patience(authority, confirmations, every)
        tls = ServerTls(authority.authority, PairFiles(scene.state), (), BEGUN, patient)
        _confirmed(authority, confirmations)
        scene.now = DUE
        second = scene.put("second")
        assert authority.opened_authority.tend is not None
        authority.opened_authority.tend(DUE)
        if said:
            _confirmed(authority, confirmations)
        await tls.look(DUE + after)
        assert is_signed_by_bundle(tls.identity().chain, (second if is_new else first).pem)


def test_change_of_our_own_root_does_not_wait_for_confirmations(tmp_path: Path) -> None:
    """The mesh's own CA changes its root in stages, whatever machines have confirmed."""
    confirmations = Confirmations()
    confirmations.note(NAME, Confirmation("another", "0a", BEGUN))
    with Scene(tmp_path, BEGUN).open(own=True) as authority:
        assert not patience(authority, confirmations, DAY)(BEGUN)


async def test_new_roots_are_used_although_the_ledger_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new root is trusted at once, because proxies with certificates of it would be refused otherwise.

    The ledger is updated as soon as it can be written.
    """
    scene, steps = Scene(tmp_path, BEGUN), list[str]()
    scene.put("first")

    async def stepped() -> None:
        steps.append(authority.authority.fingerprint)
        await asyncio.sleep(0)

    def locked(_: str) -> None:
        raise StateError("database is locked")

    with scene.open() as authority:
        following = ForeignAuthorityWatch(authority, stepped)
        scene.put("second")
        with monkeypatch.context() as patch:
            patch.setattr(authority.ledger, "change_authority", locked)
            for _ in range(2):
                with pytest.raises(StateError, match="database is locked"):
                    await following.look(BEGUN)
        assert steps == [authority.authority.fingerprint] != [authority.ledger.authority()]
        await following.look(BEGUN)
        assert steps == [authority.authority.fingerprint] == [authority.ledger.authority()]
