"""Tests of a ledger that was replaced by an older copy: its missing revocations are always noticed."""

import shutil
from datetime import timedelta
from pathlib import Path

import pytest
import structlog.testing

from certs.custody import LEDGER_FILE, AuthorityWithLedger, opened, rebuilt
from certs.errors import RequestError, StateError
from certs.ledger.entry import LedgerEntry
from certs.ledger.mark import RevocationMark
from certs.ledger.sqlite import SqliteLedger
from certs.proxy import issue_proxy
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from tests.unit.certs.ledger.entries import START

DOMAIN = TrustDomain("mesh.example")
NAMES = tuple(ProxyName.parse(f"{item}.shop.market") for item in ("one", "two", "three"))
YEAR = timedelta(days=90)


def issue(authority: AuthorityWithLedger, name: ProxyName) -> str:
    """Issue a certificate and return its serial."""
    return issue_proxy(authority.authority, authority.ledger, name, YEAR, START).serial


@pytest.fixture
def restored(tmp_path: Path) -> Path:
    """Return a state directory whose ledger was replaced by a backup from before two revocations."""
    state = tmp_path / "state"
    with opened(state, DOMAIN, START) as authority:
        serials = [issue(authority, name) for name in NAMES]
        authority.ledger.revoke(serials[0], START)
    shutil.copy(state / LEDGER_FILE, tmp_path / "backup")
    with opened(state, DOMAIN, START) as authority:
        for serial in serials[1:]:
            authority.ledger.revoke(serial, START)
    shutil.copy(tmp_path / "backup", state / LEDGER_FILE)
    return state


def states(state: Path) -> list[bool]:
    """Return which certificates are revoked, in the order of their names."""
    with SqliteLedger.open(state / LEDGER_FILE) as ledger:
        by_name: dict[str, LedgerEntry] = {entry.common_name: entry for entry in ledger.entries()}
    return [by_name[str(name)].revoked_at is not None for name in NAMES]


def test_older_ledger_stops_the_start(restored: Path) -> None:
    """The error has the number of missing revocations and every way out, and appears at each start."""
    words = r"was replaced by an older one: it lacks 2 revocations.*restore the newest ledger, rebuild"
    for _ in range(2):
        with pytest.raises(StateError, match=words), opened(restored, DOMAIN, START):
            pass
    assert states(restored) == [True, False, False]


def test_newest_ledger_can_be_opened_repeatedly(tmp_path: Path) -> None:
    """This is the negative control: several processes revoke, and the backups lack no revocation."""
    state = tmp_path / "state"
    for name in NAMES:
        with opened(state, DOMAIN, START) as authority:
            serial = issue(authority, name)
            authority.ledger.revoke(serial, START)
            authority.ledger.revoke(serial, START)
            shutil.copy(state / LEDGER_FILE, tmp_path / "backup")
        shutil.copy(tmp_path / "backup", state / LEDGER_FILE)
    assert states(state) == [True, True, True]
    assert RevocationMark(state / LEDGER_FILE).read() == 3


def test_restored_newest_ledger_can_be_started_with(restored: Path, tmp_path: Path) -> None:
    """A ledger with all revocations needs no further action of the operator."""
    with SqliteLedger.open(restored / LEDGER_FILE) as ledger:
        for entry in ledger.entries():
            ledger.revoke(entry.serial, START)
    with opened(restored, DOMAIN, START) as authority:
        assert all(entry.revoked_at for entry in authority.ledger.entries())


def test_older_ledger_is_accepted_after_its_mark_is_removed(restored: Path) -> None:
    """An operator who wants the older ledger removes the mark. The ledger is compared again from then on."""
    mark = RevocationMark(restored / LEDGER_FILE)
    mark.path.unlink()
    with opened(restored, DOMAIN, START):
        pass
    assert (states(restored), mark.read()) == ([True, False, False], 1)


def test_older_ledger_can_be_rebuilt_or_begun_anew(restored: Path) -> None:
    """The old mark is moved away together with the old ledger, and the new ledger has its own mark."""
    with SqliteLedger.open(restored / LEDGER_FILE) as ledger:
        serial = ledger.first() or ""
    with opened(restored, DOMAIN, START, rebuild=serial) as authority:
        assert authority.rebuilding is not None
        assert authority.ledger.entries() == ()
    with opened(restored, DOMAIN, START, begin_anew=serial) as authority:
        assert authority.ledger.entries() == ()
        issue(authority, NAMES[0])
    with opened(restored, DOMAIN, START) as authority:
        assert len(authority.ledger.entries()) == 1
    assert (restored / f"{LEDGER_FILE}.lost-1").exists()
    assert (restored / f"{LEDGER_FILE}.lost-1.revocations").exists()
    with pytest.raises(RequestError, match="no certificate is confirmed"):
        rebuilt(restored)


def test_damaged_mark_stops_the_start(restored: Path) -> None:
    """If a damaged mark counted as missing, an older ledger would be accepted."""
    mark = RevocationMark(restored / LEDGER_FILE)
    mark.path.write_text("many\n")
    with (
        pytest.raises(
            StateError,
            match="is damaged: it must contain the number of revoked certificates\\. If the ledger in the "
            "same directory is the newest one, remove the file",
        ),
        opened(restored, DOMAIN, START),
    ):
        pass


def test_mark_is_never_lowered(tmp_path: Path) -> None:
    """A process with an older count must not overwrite a higher one. Only the owner may read the mark."""
    mark = RevocationMark(tmp_path / LEDGER_FILE)
    for count in (3, 1, 2):
        mark.raise_to(count)
    assert mark.read() == 3
    assert mark.path.stat().st_mode & 0o777 == 0o600


def test_revocation_holds_when_the_mark_cannot_be_written(tmp_path: Path) -> None:
    """The revocation is in the ledger, and the next one writes a mark that counts both."""
    state = tmp_path / "state"
    with opened(state, DOMAIN, START) as authority:
        mark = RevocationMark(state / LEDGER_FILE)
        mark.path.unlink()
        mark.path.mkdir()
        serial = issue(authority, NAMES[0])
        assert authority.ledger.revoke(serial, START).revoked_at == START
        mark.path.rmdir()
        authority.ledger.revoke(issue(authority, NAMES[1]), START)
    assert mark.read() == 2


def test_mark_is_created_with_the_ledger_at_its_full_size(tmp_path: Path) -> None:
    """A later increase needs no more space, because the disk may be full by then."""
    with SqliteLedger.open(tmp_path / LEDGER_FILE):
        mark = RevocationMark(tmp_path / LEDGER_FILE)
        size = mark.path.stat().st_size
        mark.raise_to(10**19)
    assert (mark.read(), mark.path.stat().st_size) == (10**19, size)


def test_mark_that_cannot_be_written_is_logged_once(tmp_path: Path) -> None:
    """The revocation holds, but operators must know that a later start cannot detect an older ledger."""
    mark = RevocationMark(tmp_path / LEDGER_FILE)
    mark.path.mkdir()
    with structlog.testing.capture_logs() as lines:
        for _ in range(3):
            mark.raise_to(1)
    assert [(line["event"], line["log_level"], line["count"]) for line in lines] == [
        ("revocation count cannot be written", "error", 1)
    ]
