"""Another CA in files has followed: who hears of it, and when the server shows a certificate of it."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from certs.custody import AuthorityWithLedger
from certs.errors import StateError
from certs.keys.bundle import TrustBundle
from certs.keys.leaf import stands_below
from certs.state.pair_files import PairFiles
from meshwright.controller.identity.server_tls import ServerTls
from meshwright.controller.issuing.foreign_ca import ForeignAuthorityWatch, patience
from meshwright.enrolment.trust import Confirmation, Confirmations
from tests.unit.certs.roots.test_succeeding_authority import NAME, Scene

BEGUN: Final = datetime(2026, 11, 22, 12, tzinfo=UTC)
DUE: Final = BEGUN + timedelta(days=60)
DAY: Final = 86400


def _confirmed(found: AuthorityWithLedger, confirmations: Confirmations) -> None:
    """Have a machine say, when the certificate is due, that it has the roots that are trusted now."""
    digest = TrustBundle.of([found.authority.trust_bundle()]).digest
    confirmations.note(NAME, Confirmation(digest, "0a", DUE))


@pytest.mark.parametrize(
    ("every", "after", "said", "is_new"),
    [
        (DAY, timedelta(minutes=50), True, False),  # others may not have come yet
        (DAY, timedelta(hours=2), True, True),
        (DAY, timedelta(hours=2), False, False),
        (DAY, timedelta(days=2), False, False),
        (DAY, timedelta(days=4), False, True),  # it is away
        (600, timedelta(hours=2), False, True),
        (DAY * 20, timedelta(days=31), False, True),  # what has ended serves nobody
    ],
)
async def test_it_is_shown_once_machines_believe_it(
    tmp_path: Path, every: int, after: timedelta, said: bool, is_new: bool
) -> None:
    """One that does not would not ask any more, and so never hear of the root."""
    scene, confirmations = Scene(tmp_path, BEGUN), Confirmations()
    first = scene.put("first")
    with scene.open() as found:
        patient = patience(found, confirmations, every)
        tls = ServerTls(found.authority, PairFiles(scene.state), (), BEGUN, patient)
        _confirmed(found, confirmations)
        scene.now = DUE
        second = scene.put("second")
        assert found.whose.tend is not None
        found.whose.tend(DUE)
        if said:
            _confirmed(found, confirmations)
        await tls.look(DUE + after)
        assert stands_below(tls.identity().chain, (second if is_new else first).pem)


def test_a_root_of_our_own_waits_by_its_stages(tmp_path: Path) -> None:
    """Whatever machines say."""
    confirmations = Confirmations()
    confirmations.note(NAME, Confirmation("another", "0a", BEGUN))
    with Scene(tmp_path, BEGUN).open(own=True) as found:
        assert not patience(found, confirmations, DAY)(BEGUN)


async def test_roots_are_looked_at_though_the_ledger_cannot_say_who_signs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or who comes by the new root would be refused; the ledger is told as soon as it can be."""
    scene, steps = Scene(tmp_path, BEGUN), list[str]()
    scene.put("first")

    async def stepped() -> None:
        steps.append(found.authority.fingerprint)
        await asyncio.sleep(0)

    def locked(_: str) -> None:
        raise StateError("database is locked")

    with scene.open() as found:
        following = ForeignAuthorityWatch(found, stepped)
        scene.put("second")
        with monkeypatch.context() as patch:
            patch.setattr(found.ledger, "change_authority", locked)
            for _ in range(2):
                with pytest.raises(StateError, match="database is locked"):
                    await following.look(BEGUN)
        assert steps == [found.authority.fingerprint] != [found.ledger.authority()]
        await following.look(BEGUN)
        assert steps == [found.authority.fingerprint] == [found.ledger.authority()]
