"""Tests of certificate renewal by a proxy: files after a crash, and times of renewal and retry."""

import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from certs.errors import StateError
from certs.keys.bundle import pinned, pins
from certs.keys.material import PeerCertificate, PrivateKey
from certs.keys.signing_request import judged, new_key, request_for
from certs.ledger.sqlite import SqliteLedger
from certs.proxy import sign_proxy
from certs.state import files as whole
from meshwright.agent import certificates
from meshwright.agent.enrolment import certificate_keeper as keeping
from meshwright.agent.enrolment import files
from meshwright.agent.enrolment.settings import (
    Answer,
    EnrolmentFailure,
    EnrolmentRequestKind,
    EnrolmentResult,
    EnrolmentSettings,
    Question,
)
from meshwright.agent.enrolment.times import alarming, clock_words, planned, retry_after
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName
from tests.unit.agent.issued_credentials import authority, write_credentials

NOW = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
DAY = timedelta(days=1)


class Died(Exception):
    """Simulated death of the process."""


def signed(state: Path, key: PrivateKey) -> bytes:
    """Return a certificate chain for a key."""
    now = datetime.now(UTC)
    with SqliteLedger.open(state / "ledger.db") as ledger:
        request = judged(request_for(key))
        return sign_proxy(authority(state), ledger, ProxyName.parse("u.s.n"), request, DAY, now).chain_pem


@pytest.mark.parametrize("steps", range(8))
def test_crash_at_any_step_leaves_a_matching_key_and_certificate(
    tmp_path: Path, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a crash at any change of the file system, the files hold a matching pair.

    The new pair is completed, or the old pair is still in place.
    """
    out = tmp_path / "out"
    write_credentials(tmp_path, out)
    before = certificates.read(out).serial
    left = steps

    def mortal(work: Callable[..., object]) -> Callable[..., object]:
        def step(*arguments: object, **named: object) -> object:
            nonlocal left
            if left == 0:
                raise Died
            left -= 1
            return work(*arguments, **named)

        return step

    key = new_key()
    chain = signed(tmp_path, key)
    with monkeypatch.context() as dying:
        dying.setattr(Path, "replace", mortal(Path.replace))
        dying.setattr(whole, "sync_directory", mortal(whole.sync_directory))
        died = False
        try:
            files.put_next_key(out, key)
            files.put(out, chain, authority(tmp_path).trust_bundle())
        except (Died, StateError):
            died = True
    files.complete(out)
    after = certificates.read(out)
    assert died or after.serial != before
    assert (files.next_key(out) is None) or after.serial == before
    assert not (out / files.NEXT_CHAIN).exists()


def test_pending_key_is_used_again(tmp_path: Path) -> None:
    """The pending key is kept with mode 0600 and used again, so that a lost answer costs nothing.

    An unreadable key is an error.
    """
    key = new_key()
    files.put_next_key(tmp_path / "out", key)
    assert files.next_key(tmp_path / "out") == key
    assert (tmp_path / "out" / files.NEXT_KEY).stat().st_mode & 0o777 == 0o600
    request = x509.load_der_x509_csr(request_for(key))
    assert request.is_signature_valid
    assert len(request.subject.rdns) == len(request.extensions) == 0
    for wrong in (b"", b"no key", key.reveal()[:-40]):
        with pytest.raises(ValueError, match=r"^the private key cannot be read$"):
            request_for(PrivateKey(wrong))


def shown(life: timedelta = timedelta(days=90)) -> PeerCertificate:
    """Return a certificate that begins at `NOW`."""
    return PeerCertificate("u.s.n", "abc", NOW, NOW + life, (), client_auth=True)


def test_renewal_is_at_half_of_the_lifetime_or_at_the_server_s_earlier_time() -> None:
    """Renewal is planned at about half of the lifetime, or earlier if the server says so.

    After a failure the time of the retry counts. The next action is the earlier of renewal and trust
    refresh.
    """
    plan = planned(shown(), None, NOW + DAY, None)
    assert timedelta(days=40) < plan.renew - NOW < timedelta(days=50)
    assert plan.next == NOW + DAY
    assert planned(shown(), NOW, NOW + DAY, None).next == NOW
    assert planned(shown(), NOW + 80 * DAY, NOW + DAY, None).renew == plan.renew
    assert planned(shown(), NOW, NOW + DAY, NOW + 2 * DAY).renew == NOW + 2 * DAY


def test_retries_back_off_and_fit_into_the_remaining_lifetime() -> None:
    """Pauses double up to 600 s. They are at most an eighth of the remaining lifetime, and at least 2.5 s."""
    waits = [retry_after(failures, 60 * DAY, 1.0).total_seconds() for failures in range(1, 10)]
    assert waits == [5, 10, 20, 40, 80, 160, 320, 600, 600]
    assert retry_after(100, timedelta(hours=1), 1.0) == timedelta(seconds=450)
    assert retry_after(100, timedelta(seconds=1), 0.0) == timedelta(seconds=2.5)


def test_retries_after_expiry_are_at_most_30_seconds_apart() -> None:
    """After expiry the pauses double up to 30 s.

    A fleet with expired certificates does not retry as fast as it can.
    """
    ended = [retry_after(failures, timedelta(hours=-1), 1.0).total_seconds() for failures in range(1, 7)]
    assert ended == [5, 10, 20, 30, 30, 30]


def test_last_quarter_of_the_lifetime_is_alarming() -> None:
    """An alarm is raised in the last quarter of the certificate's lifetime."""
    certificate = shown(4 * DAY)
    assert [alarming(certificate, NOW + days * DAY) for days in (2.9, 3.1)] == [False, True]


def test_large_clock_difference_is_reported_with_its_direction() -> None:
    """A difference of an hour is reported as ahead or behind; one of 4 minutes is not reported."""
    assert clock_words(NOW, NOW + timedelta(minutes=4)) == ""
    assert clock_words(NOW, NOW + timedelta(hours=1)) == (
        "the clock of this machine is 60 minutes ahead of the clock of the control plane"
    )
    assert "is 60 minutes behind" in clock_words(NOW, NOW - timedelta(hours=1))


def test_root_is_found_by_the_pin_of_its_key(tmp_path: Path) -> None:
    """Only the certificate with the pinned key is taken.

    Other certificates and unreadable bytes are skipped.
    """
    ours, other = (authority(tmp_path / name).trust_bundle() for name in ("ours", "other"))
    (pin,) = pins(ours)
    assert pin == authority(tmp_path / "ours").fingerprint
    encoded = [x509.load_pem_x509_certificate(item).public_bytes(Encoding.DER) for item in (other, ours)]
    assert pinned([b"no certificate", *encoded, *encoded], [pin]) == ours
    assert pinned(encoded[:1], [pin]) == b""


async def waits_between(
    asked_for: list[Answer], monkeypatch: pytest.MonkeyPatch, out: Path, replace: keeping.Replace
) -> list[float]:
    """Return the seconds between consecutive trust requests, given these answers."""
    clock, asked = NOW, list[float]()

    class EnoughError(Exception):
        """Raised after the last answer to end the test."""

    async def asleep(seconds: float) -> None:
        nonlocal clock
        clock += timedelta(seconds=seconds)

    def passed() -> float:
        return (clock - NOW).total_seconds()

    async def ask(question: Question) -> Answer:
        asked.append((clock - NOW).total_seconds())
        if len(asked) > len(asked_for):
            raise EnoughError
        return asked_for[len(asked) - 1]

    monkeypatch.setattr(keeping, "now", lambda: clock)
    monkeypatch.setattr(keeping, "monotonic", passed)
    monkeypatch.setattr("meshwright.agent.enrolment.certificate_keeper.asyncio.sleep", asleep)
    monkeypatch.setattr("meshwright.agent.enrolment.certificate_keeper.random.random", lambda: 0.5)
    settings = EnrolmentSettings(renewal=(HostPort("127.0.0.1", 1),))
    with pytest.raises(EnoughError):
        await keeping.EnrolledCertificate(settings, out, replace, shown, ask=ask).run()
    return [later - sooner for sooner, later in itertools.pairwise(asked)]


FAILED = EnrolmentFailure("nobody there")


def told(authority: bytes = b"") -> EnrolmentResult:
    """Return an answer with these roots, or without new ones."""
    return EnrolmentResult(b"", authority, NOW + 60 * DAY, NOW, 600)


async def test_failed_trust_requests_are_retried_with_growing_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed trust request is retried within seconds. A change of the root waits for all proxies."""
    asked: list[Answer] = [*[FAILED] * 4, told(), FAILED, FAILED]
    waits = await waits_between(asked, monkeypatch, tmp_path, _never_replaced)
    assert waits == [3.75, 7.5, 15.0, 30.0, 600.0, 3.75, 7.5]


async def test_roots_that_cannot_be_written_are_requested_with_growing_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed write, for example to a full disk, is retried with growing pauses.

    After success the server is informed within a second.
    """
    tried = list[bool]()

    async def replace(work: Callable[[], None]) -> bool:
        del work
        tried.append(len(tried) == 3)
        return tried[-1]

    asked: list[Answer] = [*[told(b"roots")] * 4, told()]
    assert await waits_between(asked, monkeypatch, tmp_path, replace) == [3.75, 7.5, 15.0, 1.0, 600.0]


@pytest.mark.parametrize("answers", [told(), FAILED])
async def test_clock_set_back_to_the_right_time_stops_no_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: Answer
) -> None:
    """After a clock a year ahead is corrected, trust requests and renewals continue after the usual pause."""
    set_by, passed, asked = timedelta(days=365), 0.0, list[tuple[EnrolmentRequestKind, float]]()

    class EnoughError(Exception):
        """Raised after two hours to end the test."""

    async def asleep(seconds: float) -> None:
        nonlocal passed, set_by
        passed += seconds
        set_by = timedelta()  # the clock has been corrected
        if passed > 7200:
            raise EnoughError

    async def ask(question: Question) -> Answer:
        asked.append((question.asking, passed))
        return answers if question.asking is EnrolmentRequestKind.TRUST else FAILED

    monkeypatch.setattr(keeping, "monotonic", lambda: passed)
    monkeypatch.setattr(keeping, "now", lambda: NOW + timedelta(seconds=passed) + set_by)
    monkeypatch.setattr("meshwright.agent.enrolment.certificate_keeper.asyncio.sleep", asleep)
    settings = EnrolmentSettings(renewal=(HostPort("127.0.0.1", 1),))
    with pytest.raises(EnoughError):
        await keeping.EnrolledCertificate(settings, tmp_path, _never_replaced, shown, ask=ask).run()
    for item in (EnrolmentRequestKind.TRUST, EnrolmentRequestKind.RENEW):
        moments = [at for asking, at in asked if asking is item]
        assert len(moments) > 2, asked


async def _never_replaced(work: Callable[[], None]) -> bool:
    raise AssertionError(work)
