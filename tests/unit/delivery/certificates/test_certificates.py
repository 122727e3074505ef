"""Tests of service certificates: issuance, renewal, and failures of the issuer."""

import asyncio
import threading
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import structlog

from certs.authority_files.store import AuthorityFiles
from certs.contract import CertificateRequest
from certs.errors import IssuerError
from certs.issuers.authority import CertificateAuthority
from certs.keys.material import ServiceCertificate
from certs.manager import CertificateManager
from certs.roots.authority import ChangingAuthority
from certs.roots.rotation import advanced
from certs.state.pair_files import PairFiles
from certs.state.stored_pair import IssuedPair
from meshwright.delivery.certificates import certificates
from meshwright.delivery.certificates.certificates import ServiceCertificates
from meshwright.delivery.certificates.issuance_problems import remarks_on
from meshwright.delivery.certificates.issuing import AT_ONCE, ConcurrentIssuing
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName, TrustDomain
from meshwright.mesh.problems.problem import Problems
from tests.tools.deadline import wait_until
from tests.tools.own_authority import own_authority

DAY = timedelta(days=1)
STORE = ServiceIdentity(Namespace("shop"), ServiceAccountName("store"))
BUYER = ServiceIdentity(Namespace("shop"), ServiceAccountName("buyer"))
BAD = ServiceIdentity(Namespace("Shop"), ServiceAccountName("store"))
NAMES = ("store.shop.svc.cluster.local",)


class _Issuer:
    """An authority that fails, waits or trusts further roots on demand."""

    def __init__(self, authority: CertificateAuthority) -> None:
        self.authority = authority
        self.down = False
        self.further = b""
        self.asked = 0
        self.gate: threading.Event | None = None

    def become(self, authority: CertificateAuthority) -> None:
        """Sign with another root."""
        self.authority = authority

    @property
    def trust_domain(self) -> TrustDomain:
        """Return the authority's trust domain."""
        return self.authority.trust_domain

    def issue(self, request: CertificateRequest, now: datetime) -> bytes:
        """Issue a certificate, or fail."""
        self.asked += 1
        if self.gate is not None:
            assert self.gate.wait(60)
        if self.down:
            raise IssuerError("the issuer is down")
        return self.authority.issue(request, now)

    def trust_bundle(self) -> bytes:
        """Return the authority's root and the further roots."""
        return self.authority.trust_bundle() + self.further

    def signing_bundle(self) -> bytes:
        """Return the authority's signing bundle."""
        return self.authority.signing_bundle()


@pytest.fixture
def issuer(tmp_path: Path, now: datetime) -> _Issuer:
    """Return a working issuer."""
    return _Issuer(own_authority(tmp_path, TrustDomain("cluster.local"), now))


def _keeper(issuer: _Issuer, state: Path, issued: list[int]) -> ServiceCertificates:
    return ServiceCertificates(
        issuer, PairFiles(state), lambda issuance_counts: issued.append(issuance_counts.issued), lambda: 0.0
    )


def _needed(
    keeper: ServiceCertificates,
    needed: Mapping[ServiceIdentity, tuple[str, ...]],
    validity: timedelta,
    now: datetime,
) -> tuple[Mapping[ServiceIdentity, ServiceCertificate], Problems]:
    """Update the needed certificates; return the certificates in force, and the problems."""
    problems = keeper.update(needed, validity, now).problems
    return keeper.certificates, problems


def test_certificate_of_another_server_is_used_and_not_counted(
    issuer: _Issuer, tmp_path: Path, now: datetime
) -> None:
    """Two servers renew one stored certificate. Only the first one has issued and renewed a certificate."""
    counts: list[tuple[int, int]] = []
    keepers = [
        ServiceCertificates(
            issuer, PairFiles(tmp_path), lambda item: counts.append((item.issued, item.renewed)), lambda: 0.0
        )
        for _ in range(2)
    ]
    seen = []
    for at in (now, now + timedelta(hours=17)):
        for keeper in keepers:
            certificates, _ = _needed(keeper, {STORE: NAMES}, DAY, at)
            seen.append(certificates[STORE].serial)
    assert seen == [seen[0]] * 2 + [seen[2]] * 2
    assert seen[0] != seen[2]
    assert counts == [(1, 0), (0, 0), (1, 1), (0, 0)]


def test_certificate_that_another_server_stored_replaces_the_one_in_force(
    issuer: _Issuer, tmp_path: Path, now: datetime
) -> None:
    """Without the news, this server would serve its own one until that is due."""
    here, there = (_keeper(issuer, tmp_path, []) for _ in range(2))
    _needed(here, {STORE: NAMES}, DAY, now)
    _needed(there, {STORE: (*NAMES, "other.example")}, DAY, now)
    stored, _ = _needed(there, {STORE: NAMES}, DAY, now)
    assert not here.needs_work(now)
    here.compare((STORE, BUYER))
    assert here.needs_work(now)
    changed = here.update({}, DAY, now).changed
    assert {identity: held and held.serial for identity, held in changed.items()} == {
        STORE: stored[STORE].serial
    }
    assert not here.needs_work(now)


def _second(issuer: _Issuer, state: Path, asking: ConcurrentIssuing) -> ServiceCertificates:
    """Return the certificates of a server that is the second one of two for each identity."""
    return ServiceCertificates(
        issuer, PairFiles(state), lambda _: None, lambda: 0.0, asking=asking, turn=lambda _: 1
    )


def test_certificate_with_other_names_is_requested_by_one_server(
    issuer: _Issuer, tmp_path: Path, now: datetime
) -> None:
    """The second server has a certificate in force, and takes the new one of the first server."""
    first, asking = _keeper(issuer, tmp_path, []), ConcurrentIssuing(patience=60)
    second = _second(issuer, tmp_path, asking)
    second.update({STORE: NAMES}, DAY, now)
    assert issuer.asked == 1, "a proxy waits for its first certificate, so the second server asks at once"
    names = (*NAMES, "other.example")
    assert second.update({STORE: names}, DAY, now).changed == {}
    assert not second.needs_work(now)
    wanted, _ = _needed(first, {STORE: names}, DAY, now)
    second.compare((STORE,))
    assert second.needs_work(now)
    second.update({}, DAY, now)
    assert second.certificates[STORE].serial == wanted[STORE].serial
    assert issuer.asked == 2
    assert not second.needs_work(now + timedelta(hours=1)), "its turn is over"
    asking.close()


def test_second_server_requests_a_certificate_if_the_first_one_does_not(
    issuer: _Issuer, tmp_path: Path, now: datetime
) -> None:
    """It asks after 5 s. After a failure it asks again without this pause."""
    asking = ConcurrentIssuing(patience=60)
    keeper, at = _second(issuer, tmp_path, asking), now
    keeper.update({STORE: NAMES}, DAY, at)
    keeper.update({STORE: ("other.example",)}, DAY, at)
    assert not keeper.needs_work(at + timedelta(seconds=4.9))
    assert issuer.asked == 1
    issuer.down = True
    at += timedelta(seconds=5)
    assert keeper.needs_work(at)
    keeper.update({}, DAY, at)
    assert issuer.asked == 2
    issuer.down = False
    at += timedelta(seconds=2)
    keeper.update({}, DAY, at)
    wait_until(asking.arrived, 60)
    keeper.update({}, DAY, at)
    assert keeper.certificates[STORE].dns_names == ("other.example",)
    assert issuer.asked == 3
    asking.close()


def test_second_server_renews_without_another_pause(issuer: _Issuer, tmp_path: Path, now: datetime) -> None:
    """The time of its renewal is already later than that of the first server. A clock may be set back."""
    asking = ConcurrentIssuing(patience=60)
    keeper = _second(issuer, tmp_path, asking)
    keeper.update({STORE: NAMES}, DAY, now)
    keeper.update({}, DAY, now + timedelta(hours=17))
    assert issuer.asked == 2
    keeper.update({STORE: ("other.example",)}, DAY, now + timedelta(hours=17))
    assert issuer.asked == 2
    before = now + timedelta(hours=16.5)
    assert keeper.needs_work(before), "the clock was set back"
    keeper.update({}, DAY, before)
    assert issuer.asked == 3
    asking.close()


def test_certificate_is_kept_until_its_renewal_is_due(issuer: _Issuer, tmp_path: Path, now: datetime) -> None:
    """A certificate of one day is unchanged after 10 hours and renewed after 17 hours."""
    issued: list[int] = []
    keeper = _keeper(issuer, tmp_path, issued)
    first, _ = _needed(keeper, {STORE: NAMES}, DAY, now)
    again, _ = _needed(keeper, {STORE: NAMES}, DAY, now + timedelta(hours=10))
    assert again == first
    assert not keeper.needs_work(now + timedelta(hours=10))
    assert keeper.needs_work(now + timedelta(hours=17))
    renewed, _ = _needed(keeper, {STORE: NAMES}, DAY, now + timedelta(hours=17))
    assert renewed[STORE].serial != first[STORE].serial
    assert issued == [1, 0, 1]


def test_failing_issuer_leaves_the_old_certificate_in_force(
    issuer: _Issuer, tmp_path: Path, now: datetime
) -> None:
    """The problem names the identity and the cause, and the renewal is retried after one second."""
    keeper = _keeper(issuer, tmp_path, [])
    first, _ = _needed(keeper, {STORE: NAMES}, DAY, now)
    issuer.down = True
    later = now + timedelta(hours=17)
    kept, (problem,) = _needed(keeper, {STORE: NAMES}, DAY, later)
    assert kept == first
    assert (str(problem.key), problem.expected) == ("ServiceAccount shop/store", "the issuer is down")
    issuer.down = False
    assert not keeper.needs_work(later)
    later += timedelta(seconds=1)
    assert keeper.needs_work(later)
    renewed, problems = _needed(keeper, {}, DAY, later)
    assert renewed[STORE].serial != first[STORE].serial
    assert problems == ()
    assert not keeper.needs_work(later)


def test_invalid_identity_does_not_prevent_certificates_of_others(
    issuer: _Issuer, tmp_path: Path, now: datetime
) -> None:
    """The invalid identity is a problem, and the valid one gets its certificate."""
    made, problems = _needed(_keeper(issuer, tmp_path, []), {BAD: (), STORE: NAMES}, DAY, now)
    assert list(made) == [STORE]
    assert [problem.code for problem in problems] == ["certificate-not-issued"]


def test_changed_root_is_trusted_at_once_and_replaces_certificates_once(
    tmp_path: Path, now: datetime
) -> None:
    """The bundle has the new root at once; certificates are replaced when the new root signs.

    After a restart the replaced certificates are still in force.
    """
    authority = ChangingAuthority(AuthorityFiles(tmp_path), TrustDomain("cluster.local"), now)
    issued: list[int] = []
    keeper = ServiceCertificates(
        authority,
        PairFiles(tmp_path),
        lambda issuance_counts: issued.append(issuance_counts.issued),
        lambda: 0.0,
    )
    first, _ = _needed(keeper, {STORE: NAMES}, DAY, now)
    rotation = authority.begin(now)
    assert keeper.needs_work(now)
    update = keeper.update({}, DAY, now)
    assert (update.trust_bundle, dict(update.changed)) == (authority.trust_bundle(), {})
    assert not keeper.needs_work(now)
    authority.step(advanced(rotation, now), now)
    assert keeper.needs_work(now)
    replaced, _ = _needed(keeper, {}, DAY, now)
    assert replaced[STORE].serial != first[STORE].serial
    assert not keeper.needs_work(now)
    again = ServiceCertificates(
        authority,
        PairFiles(tmp_path),
        lambda issuance_counts: issued.append(issuance_counts.issued),
        lambda: 0.0,
    )
    assert _needed(again, {STORE: NAMES}, DAY, now)[0] == replaced
    assert issued == [1, 0, 1, 0]


def test_certificate_of_an_old_root_stays_while_its_replacement_fails(
    issuer: _Issuer, tmp_path: Path, now: datetime
) -> None:
    """The certificate stays in force, with a problem, until the issuer of the new root works."""
    keeper = _keeper(issuer, tmp_path, [])
    first, _ = _needed(keeper, {STORE: NAMES}, DAY, now)
    issuer.become(own_authority(tmp_path / "other", TrustDomain("cluster.local"), now))
    issuer.down = True
    kept, problems = _needed(keeper, {}, DAY, now)
    assert (kept, len(problems)) == (first, 1)
    issuer.down = False
    replaced, problems = _needed(keeper, {}, DAY, now + timedelta(seconds=1))
    assert (replaced[STORE].serial != first[STORE].serial, problems) == (True, ())


def test_changed_validity_applies_from_the_next_renewal(
    issuer: _Issuer, tmp_path: Path, now: datetime
) -> None:
    """MeshConfig may change at any time, so a new validity replaces no certificate at once."""
    issued: list[int] = []
    keeper = _keeper(issuer, tmp_path, issued)
    first, _ = _needed(keeper, {STORE: NAMES}, DAY, now)
    second, _ = _needed(keeper, {STORE: NAMES}, DAY / 2, now)
    assert second == first
    renewed, _ = _needed(keeper, {STORE: NAMES}, DAY / 2, now + timedelta(hours=17))
    certificate = renewed[STORE]
    assert certificate.not_after == now.replace(microsecond=0) + timedelta(hours=17) + DAY / 2


def test_removed_identity_is_not_renewed(issuer: _Issuer, tmp_path: Path, now: datetime) -> None:
    """Its due renewal passes without a new certificate, because no proxy needs one."""
    keeper, later = _keeper(issuer, tmp_path, []), now + timedelta(days=2)
    _needed(keeper, {STORE: NAMES}, DAY, now)
    keeper.update({STORE: None}, DAY, now)
    assert keeper.update({}, DAY, later).changed == {}
    assert not keeper.needs_work(later)
    assert dict(keeper.certificates) == {}


def test_stored_certificate_with_other_names_is_served_until_it_is_replaced(
    issuer: _Issuer, tmp_path: Path, now: datetime
) -> None:
    """The URI identifies the service, so old DNS names suffice while the issuer fails after a restart.

    An expired certificate is not served.
    """
    first, _ = _needed(_keeper(issuer, tmp_path, []), {STORE: NAMES}, DAY, now)
    issuer.down, others = True, (*NAMES, "till.shop.svc.cluster.local")
    restarted = _keeper(issuer, tmp_path, [])
    kept, (problem,) = _needed(restarted, {STORE: others}, DAY, now)
    assert (kept, problem.expected) == (first, "the issuer is down")
    issuer.down = False
    later = now + timedelta(minutes=5)
    assert restarted.needs_work(later)
    replaced, problems = _needed(restarted, {}, DAY, later)
    assert (replaced[STORE].dns_names, problems) == (others, ())
    issuer.down = True
    ended, _ = _needed(_keeper(issuer, tmp_path, []), {STORE: NAMES}, DAY, later + 2 * DAY)
    assert ended == {}


def test_failing_issuer_is_retried_with_growing_pauses_for_each_identity(
    issuer: _Issuer, tmp_path: Path, now: datetime
) -> None:
    """Pauses grow from one second to more than ten; another identity is requested at once."""
    keeper = _keeper(issuer, tmp_path, [])
    issuer.down = True
    _needed(keeper, {STORE: NAMES}, DAY, now)
    tries, moment = issuer.asked, now
    pauses: list[float] = []
    while len(pauses) < 8:
        before = moment
        while not keeper.needs_work(moment):
            moment += timedelta(milliseconds=50)
        _needed(keeper, {}, DAY, moment)
        pauses.append((moment - before).total_seconds())
    assert issuer.asked == tries + 8
    assert pauses == sorted(pauses)
    assert (pauses[0] <= 1.05, pauses[-1] > 10) == (True, True)
    _needed(keeper, {BUYER: ()}, DAY, moment)
    assert issuer.asked == tries + 9, "the other one alone"


def test_restart_with_a_failing_issuer_serves_the_stored_certificate(
    issuer: _Issuer, tmp_path: Path, now: datetime
) -> None:
    """A certificate that is due for renewal is served until it expires."""
    first, _ = _needed(_keeper(issuer, tmp_path, []), {STORE: NAMES}, DAY, now)
    issuer.down = True
    later = now + timedelta(hours=20)
    again, problems = _needed(_keeper(issuer, tmp_path, []), {STORE: NAMES}, DAY, later)
    assert (again[STORE].serial, len(problems)) == (first[STORE].serial, 1)
    none, _ = _needed(_keeper(issuer, tmp_path, []), {STORE: NAMES}, DAY, now + timedelta(hours=25))
    assert dict(none) == {}


def test_certificate_with_less_than_a_quarter_of_its_life_is_reported(
    issuer: _Issuer, tmp_path: Path, now: datetime
) -> None:
    """Readiness has a sentence, and the log has one error for each identity, until the renewal succeeds."""
    keeper = _keeper(issuer, tmp_path, [])
    _needed(keeper, {STORE: NAMES, BUYER: ()}, DAY, now)
    issuer.down = True
    with structlog.testing.capture_logs() as logs:
        for hours in (13, 17, 19, 20):
            _needed(keeper, {}, DAY, now + timedelta(hours=hours))
            early = keeper.running_out(now + timedelta(hours=17))
    alarms = [log["identity"] for log in logs if log["log_level"] == "error"]
    assert sorted(alarms) == ["shop/buyer", "shop/store"]
    assert early == ()
    (text,) = remarks_on(keeper.running_out(now + timedelta(hours=19)))
    assert text.startswith(
        "2 service certificates expire soon and cannot be renewed; the first, of shop/buyer"
    )
    assert text.endswith("expires at 2026-01-03T03:04:05Z: the issuer is down")
    issuer.down = False
    _needed(keeper, {}, DAY, now + timedelta(hours=21))
    assert remarks_on(keeper.running_out(now + timedelta(hours=21))) == ()


def test_certificate_below_no_trusted_root_is_replaced_at_once(
    issuer: _Issuer, tmp_path: Path, now: datetime
) -> None:
    """A further root changes only the bundle; the removal of a certificate's root replaces it."""
    keeper = _keeper(issuer, tmp_path / "a", [])
    first, _ = _needed(keeper, {STORE: NAMES}, DAY, now)
    other = own_authority(tmp_path / "b", TrustDomain("cluster.local"), now)
    issuer.further = other.trust_bundle()
    assert keeper.needs_work(now)
    update = keeper.update({}, DAY, now)
    assert (update.changed, update.trust_bundle) == ({}, issuer.trust_bundle())
    assert not keeper.needs_work(now)
    issuer.authority, issuer.further = other, b""
    second, _ = _needed(keeper, {}, DAY, now)
    assert second[STORE].serial != first[STORE].serial


def test_slow_issuer_does_not_delay_a_wave(issuer: _Issuer, tmp_path: Path, now: datetime) -> None:
    """A late certificate is taken by a later update, with the names that are needed by then."""
    asking, event = ConcurrentIssuing(patience=0.01), threading.Event()
    asking.when_arrived(event.set)
    keeper = ServiceCertificates(issuer, PairFiles(tmp_path), lambda _: None, lambda: 0.0, asking=asking)
    issuer.gate = threading.Event()
    none, problems = _needed(keeper, {STORE: NAMES}, DAY, now)
    assert (dict(none), problems, keeper.needs_work(now)) == ({}, (), False)
    _needed(keeper, {STORE: ("other.shop.svc",)}, DAY, now)
    issuer.gate.set()
    deadline = time.monotonic() + 60
    while asking.open():
        assert event.wait(60)
        assert time.monotonic() < deadline
        event.clear()
        _needed(keeper, {}, DAY, now)
    assert keeper.certificates[STORE].dns_names == ("other.shop.svc",)
    assert not keeper.needs_work(now)
    asking.close()


def test_queued_certificate_is_requested_with_the_time_of_its_turn(
    issuer: _Issuer, tmp_path: Path, now: datetime
) -> None:
    """An external issuer dates the certificate by its own clock, so it is not yet valid at an older time."""
    seconds, moments = [0.0], list[datetime]()
    asking = ConcurrentIssuing(patience=0.01, seconds=lambda: seconds[0])
    manager = CertificateManager(issuer, PairFiles(tmp_path), DAY, lambda: 0.0)
    issuer.gate = threading.Event()

    def last(at: datetime) -> IssuedPair:
        moments.append(at)
        return manager.request(STORE, NAMES)(at)

    busy = {
        (ServiceIdentity(Namespace("shop"), ServiceAccountName(f"busy-{n}")), ()): n for n in range(AT_ONCE)
    }
    asking.ask({need: manager.request(*need) for need in busy}, now)
    assert asking.ask({(STORE, NAMES): last}, now) == {}
    seconds[0] = 45.0
    issuer.gate.set()
    deadline = time.monotonic() + 60
    while asking.open():
        assert time.monotonic() < deadline
        asking.ask({}, now)
    asking.close()
    assert moments == [now + timedelta(seconds=45)]


def test_silent_issuer_is_waited_for_once(issuer: _Issuer, tmp_path: Path, now: datetime) -> None:
    """Retries and open requests delay no wave, because the wave has other changes."""
    asking = ConcurrentIssuing(patience=3600)
    keeper = ServiceCertificates(issuer, PairFiles(tmp_path), lambda _: None, lambda: 0.0, asking=asking)
    issuer.down = True
    _, problems = _needed(keeper, {STORE: NAMES}, DAY, now)
    assert len(problems) == 1
    issuer.gate = threading.Event()
    for seconds in (10, 20):
        _needed(keeper, {STORE: NAMES}, DAY, now + timedelta(seconds=seconds))
        assert asking.open() == {STORE}
    issuer.gate.set()
    asking.close()


async def test_renewing_task_is_woken_by_an_answer(issuer: _Issuer, tmp_path: Path, now: datetime) -> None:
    """The task does not wait for its next look, which is half a minute away."""
    asking, changed = ConcurrentIssuing(patience=0.01), asyncio.Event()
    keeper = ServiceCertificates(issuer, PairFiles(tmp_path), lambda _: None, lambda: 0.0, asking=asking)
    renewing = asyncio.create_task(keeper.renewing(lambda: now, changed.set))
    await asyncio.sleep(0)
    issuer.gate = threading.Event()
    _needed(keeper, {STORE: NAMES}, DAY, now)
    issuer.gate.set()
    async with asyncio.timeout(25):
        await changed.wait()
    renewing.cancel()
    await asyncio.wait([renewing])
    asking.close()


async def test_answer_before_the_start_of_the_renewing_task_is_taken(
    issuer: _Issuer, tmp_path: Path, now: datetime
) -> None:
    """An issuer may answer between a server's first wave and the start of the task."""
    asking, changed = ConcurrentIssuing(patience=0.01), asyncio.Event()
    keeper = ServiceCertificates(issuer, PairFiles(tmp_path), lambda _: None, lambda: 0.0, asking=asking)
    issuer.gate = threading.Event()
    _needed(keeper, {STORE: NAMES}, DAY, now)
    issuer.gate.set()
    async with asyncio.timeout(60):
        while not asking.arrived():
            await asyncio.sleep(0.01)
    renewing = asyncio.create_task(keeper.renewing(lambda: now, changed.set))
    async with asyncio.timeout(25):
        await changed.wait()
    renewing.cancel()
    await asyncio.wait([renewing])
    asking.close()


@pytest.mark.parametrize(("life", "down"), [(timedelta(seconds=2), False), (DAY, True)])
async def test_renewing_task_wakes_for_a_renewal_before_its_next_look(
    issuer: _Issuer,
    tmp_path: Path,
    now: datetime,
    monkeypatch: pytest.MonkeyPatch,
    life: timedelta,
    down: bool,
) -> None:
    """A certificate of two seconds, issued during the pause, or a retry after a second is due earlier."""
    monkeypatch.setattr(certificates, "RENEWAL_SECONDS", 100_000.0)
    keeper, changed, clock = _keeper(issuer, tmp_path, []), asyncio.Event(), [now]
    renewing = asyncio.create_task(keeper.renewing(lambda: clock[0], changed.set))
    await asyncio.sleep(0)
    issuer.down = down
    await asyncio.to_thread(_needed, keeper, {STORE: NAMES}, life, now)
    clock[0] = now + timedelta(seconds=9)
    async with asyncio.timeout(60):
        await changed.wait()
    renewing.cancel()
    await asyncio.wait([renewing])


def test_renewals_wait_for_an_unsettled_issuer_unless_urgent(
    issuer: _Issuer, tmp_path: Path, now: datetime
) -> None:
    """Missing certificates, and those that expire soon, are issued; the others wait for the issuer."""
    settled = [now]
    keeper = ServiceCertificates(
        issuer, PairFiles(tmp_path), lambda _: None, lambda: 0.0, waits=lambda at: at < settled[0]
    )
    first, _ = _needed(keeper, {STORE: NAMES}, DAY, now)
    settled[0] = now + timedelta(hours=30)
    waiting, problems = _needed(keeper, {BUYER: ()}, DAY, now + timedelta(hours=14))
    assert (waiting[STORE], sorted(waiting), problems) == (first[STORE], [BUYER, STORE], ())
    late, _ = _needed(keeper, {}, DAY, now + timedelta(hours=19))
    assert late[STORE].serial != first[STORE].serial
    settled[0] = now
    after, _ = _needed(keeper, {}, DAY, now + timedelta(hours=28))
    assert after[BUYER].serial != late[BUYER].serial
