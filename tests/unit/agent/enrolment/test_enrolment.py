"""Files and times of a proxy that renews its certificate: what dying leaves, and who is asked when."""

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
from tests.unit.agent.credentials_of import authority, write_credentials

NOW = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
DAY = timedelta(days=1)


class Died(Exception):
    """The process dies here."""


def signed(state: Path, key: PrivateKey) -> bytes:
    """Return a certificate for a key."""
    now = datetime.now(UTC)
    with SqliteLedger.open(state / "ledger.db") as ledger:
        request = judged(request_for(key))
        return sign_proxy(authority(state), ledger, ProxyName.parse("u.s.n"), request, DAY, now).chain_pem


@pytest.mark.parametrize("steps", range(8))
def test_a_process_that_dies_leaves_a_pair_that_fits(
    tmp_path: Path, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At whichever change of the file system: what it has begun is completed, or was not begun."""
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


def test_a_key_that_waits_is_used_again_and_no_other_is_made(tmp_path: Path) -> None:
    """So that an answer that was lost costs nothing; and it is private."""
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
    """Return a certificate that begins now."""
    return PeerCertificate("u.s.n", "abc", NOW, NOW + life, (), client_auth=True)


def test_a_certificate_is_renewed_at_half_of_its_life_or_sooner_if_the_server_says_so() -> None:
    """And after a failure when it is tried again; whichever is sooner is next."""
    plan = planned(shown(), None, NOW + DAY, None)
    assert timedelta(days=40) < plan.renew - NOW < timedelta(days=50)
    assert plan.next == NOW + DAY
    assert planned(shown(), NOW, NOW + DAY, None).next == NOW
    assert planned(shown(), NOW + 80 * DAY, NOW + DAY, None).renew == plan.renew
    assert planned(shown(), NOW, NOW + DAY, NOW + 2 * DAY).renew == NOW + 2 * DAY


def test_a_failure_is_tried_again_ever_later_and_not_too_late() -> None:
    """A certificate that has an hour left is tried eight times in it, at least."""
    waits = [retry_after(failures, 60 * DAY, 1.0).total_seconds() for failures in range(1, 10)]
    assert waits == [5, 10, 20, 40, 80, 160, 320, 600, 600]
    assert retry_after(100, timedelta(hours=1), 1.0) == timedelta(seconds=450)
    assert retry_after(100, timedelta(seconds=1), 0.0) == timedelta(seconds=2.5)


def test_who_has_no_certificate_any_more_asks_every_half_minute() -> None:
    """Sooner at first; a fleet whose certificates have ended is not to ask as fast as it can, for ever."""
    ended = [retry_after(failures, timedelta(hours=-1), 1.0).total_seconds() for failures in range(1, 7)]
    assert ended == [5, 10, 20, 30, 30, 30]


def test_the_last_quarter_is_an_alarm() -> None:
    """Of the certificate's own life."""
    certificate = shown(4 * DAY)
    assert [alarming(certificate, NOW + days * DAY) for days in (2.9, 3.1)] == [False, True]


def test_a_clock_that_is_far_off_is_said() -> None:
    """Which way, and how far."""
    assert clock_words(NOW, NOW + timedelta(minutes=4)) == ""
    assert clock_words(NOW, NOW + timedelta(hours=1)) == (
        "the clock of this machine is 60 minutes ahead of the clock of the control plane"
    )
    assert "is 60 minutes behind" in clock_words(NOW, NOW - timedelta(hours=1))


def test_a_root_is_found_by_the_pin_of_its_key_among_whatever_is_shown(tmp_path: Path) -> None:
    """And nothing else is; what is no certificate is none."""
    ours, other = (authority(tmp_path / name).trust_bundle() for name in ("ours", "other"))
    (pin,) = pins(ours)
    assert pin == authority(tmp_path / "ours").fingerprint
    encoded = [x509.load_pem_x509_certificate(each).public_bytes(Encoding.DER) for each in (other, ours)]
    assert pinned([b"no certificate", *encoded, *encoded], [pin]) == ours
    assert pinned(encoded[:1], [pin]) == b""


async def waits_between(
    asked_for: list[Answer], monkeypatch: pytest.MonkeyPatch, out: Path, replace: keeping.Replace
) -> list[float]:
    """Return how many seconds there are from one question whom to trust to the next, by these answers."""
    clock, asked = NOW, list[float]()

    class EnoughError(Exception):
        """It was asked often enough."""

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
    settings = EnrolmentSettings(renewal=HostPort("127.0.0.1", 1))
    with pytest.raises(EnoughError):
        await keeping.EnrolledCertificate(settings, out, replace, shown, ask=ask).run()
    return [later - sooner for sooner, later in itertools.pairwise(asked)]


FAILED = EnrolmentFailure("nobody there")


def told(authority: bytes = b"") -> EnrolmentResult:
    """Return an answer with these roots, or none that are new."""
    return EnrolmentResult(b"", authority, NOW + 60 * DAY, NOW, 600)


async def test_who_could_not_be_asked_whom_to_trust_is_asked_again_soon_then_ever_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that comes again is heard of within seconds: a change of its root waits for everybody."""
    asked: list[Answer] = [*[FAILED] * 4, told(), FAILED, FAILED]
    waits = await waits_between(asked, monkeypatch, tmp_path, _never_replaced)
    assert waits == [3.75, 7.5, 15.0, 30.0, 600.0, 3.75, 7.5]


async def test_roots_that_cannot_be_put_in_their_place_are_asked_for_ever_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full is so for a while; once they are there it is said at once."""
    tried = list[bool]()

    async def replace(work: Callable[[], None]) -> bool:
        del work
        tried.append(len(tried) == 3)
        return tried[-1]

    asked: list[Answer] = [*[told(b"roots")] * 4, told()]
    assert await waits_between(asked, monkeypatch, tmp_path, replace) == [3.75, 7.5, 15.0, 1.0, 600.0]


@pytest.mark.parametrize("answers", [told(), FAILED])
async def test_a_clock_that_was_ahead_and_is_set_right_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: Answer
) -> None:
    """Whom to trust is asked, and a renewal that failed is tried, after the pause and not a year later."""
    set_by, passed, asked = timedelta(days=365), 0.0, list[tuple[EnrolmentRequestKind, float]]()

    class EnoughError(Exception):
        """It has gone on for long enough."""

    async def asleep(seconds: float) -> None:
        nonlocal passed, set_by
        passed += seconds
        set_by = timedelta()  # whoever keeps the clock has seen to it
        if passed > 7200:
            raise EnoughError

    async def ask(question: Question) -> Answer:
        asked.append((question.asking, passed))
        return answers if question.asking is EnrolmentRequestKind.TRUST else FAILED

    monkeypatch.setattr(keeping, "monotonic", lambda: passed)
    monkeypatch.setattr(keeping, "now", lambda: NOW + timedelta(seconds=passed) + set_by)
    monkeypatch.setattr("meshwright.agent.enrolment.certificate_keeper.asyncio.sleep", asleep)
    settings = EnrolmentSettings(renewal=HostPort("127.0.0.1", 1))
    with pytest.raises(EnoughError):
        await keeping.EnrolledCertificate(settings, tmp_path, _never_replaced, shown, ask=ask).run()
    for each in (EnrolmentRequestKind.TRUST, EnrolmentRequestKind.RENEW):
        moments = [at for asking, at in asked if asking is each]
        assert len(moments) > 2, asked


async def _never_replaced(work: Callable[[], None]) -> bool:
    raise AssertionError(work)
