"""Keeper of a proxy's certificate: joins the mesh, renews in time, and updates the trusted roots."""

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import structlog

from certs.errors import StateError
from certs.keys.material import PeerCertificate
from certs.renewal import renew_at
from certs.state.privacy import exposure_of
from meshwright.agent import credential_check as reading
from meshwright.agent.credentials import domain_beside
from meshwright.agent.enrolment import files
from meshwright.agent.enrolment.failures import combined
from meshwright.agent.enrolment.settings import (
    Answer,
    EnrolmentFailure,
    EnrolmentRequestKind,
    EnrolmentResult,
    EnrolmentSettings,
    Question,
)
from meshwright.agent.enrolment.times import LEAST_BETWEEN, Plan, alarming, clock_words, planned, retry_after
from meshwright.agent.errors import AgentError
from meshwright.agent.server_rotation import ServerRotation
from meshwright.agent.subprocess_call import ApartFailed, apart
from meshwright.mesh.host_port import HostPort

PROGRAM: Final = "meshwright.agent.enrolment.program"
SECONDS: Final = 120.0
LONGEST_SLEEP: Final = 600.0
"""Longest sleep in seconds, because the clock may be set meanwhile."""
_TOKEN: Final = "join-token"  # noqa: S105 - a kind, no secret

_log = structlog.get_logger("agent.enrolment")

Replace = Callable[[Callable[[], None]], Awaitable[bool]]
"""Changes the files without concurrent readers, and brings them into use; returns whether they are usable."""


def now() -> datetime:
    """Return the wall-clock time, which an administrator may set back."""
    return datetime.now(UTC)


def monotonic() -> float:
    """Return monotonic seconds, for pauses."""
    return time.monotonic()


class EnrolledCertificate:
    """The certificate of an enrolled proxy, renewed in time.

    `replace` changes the credential files, and `shows` returns the certificate in use.
    """

    def __init__(
        self,
        settings: EnrolmentSettings,
        directory: Path,
        replace: Replace,
        shows: Callable[[], PeerCertificate],
        *,
        shared: bool = False,
        ask: Callable[[Question], Awaitable[Answer]] | None = None,
    ) -> None:
        self._settings = settings
        self._join_servers = ServerRotation(settings.join)
        self._renewal_servers = ServerRotation(settings.renewal)
        self._directory = directory
        self._replace = replace
        self._shows = shows
        self._shared = shared
        self._ask_program = ask or _program
        self._token = ""
        self._renew_after: datetime | None = None
        self._retry: float | None = None  # in monotonic seconds, as `_trust_at`
        self._trust_at = 0.0
        self._failures = 0
        self._untold = 0
        self._why = ""

    async def begin(self, stop: asyncio.Event) -> None:
        """Obtain a certificate before Envoy starts, without a time limit, or until `stop` is set.

        Raises AgentError if joining is refused and a usable certificate is missing.
        """
        try:
            # A crash may have left the newest key or certificate under its `.next` name.
            await asyncio.to_thread(files.complete, self._directory)
        except OSError as error:
            raise AgentError(f"cannot write to {self._directory}: {error.strerror}") from error
        failures = 0
        while not stop.is_set() and await self._must_join():
            answered = await self._call_program(EnrolmentRequestKind.JOIN)
            if isinstance(answered, EnrolmentResult):
                await self._put_joined(answered, at_start=True)
                return
            if answered.refused and not files.has_pair(self._directory):
                raise AgentError(f"this machine cannot join: {answered.why}")
            failures += 1
            wait = retry_after(failures, timedelta.max, random.random())  # noqa: S311 - no secret
            if answered.refused or await self._can_wait():
                self._retry = None if answered.refused else monotonic() + wait.total_seconds()
                ends = await self._ends()
                fields = {} if ends is None else {"ends": ends.isoformat(timespec="seconds")}
                _log.error("join failed; the present certificate stays in use", reason=answered.why, **fields)
                return
            _log.warning(
                "join failed; the agent tries again",
                reason=answered.why,
                again_in=round(wait.total_seconds(), 1),
            )
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), wait.total_seconds())

    async def run(self) -> None:
        """Renew the certificate and update the trusted roots until cancelled."""
        if not self._renewal_servers:
            _log.warning("certificate renewal is off: give --renewal to renew the certificate automatically")
            await asyncio.Event().wait()
        self._trust_at = monotonic()
        while True:
            plan, at = self._plan(), now()
            if (left := (plan.next - at).total_seconds()) > 0:
                await asyncio.sleep(
                    min(left, LONGEST_SLEEP)
                )  # the plan is computed again, as the clock may have been set
            elif at >= plan.renew:
                await self._renew()
            else:
                pause = await self._trust()
                self._trust_at = monotonic() + pause.total_seconds()

    def _plan(self) -> Plan:
        """Return the times of the next renewal and of the next request for roots, by the current clock."""
        retry = None if self._retry is None else _clock_at(self._retry)
        return planned(self._shows(), self._renew_after, _clock_at(self._trust_at), retry)

    def _due(self) -> datetime:
        """Return the time of the next renewal, ignoring failures so far."""
        return planned(self._shows(), self._renew_after, now(), None).renew

    def remark(self) -> str:
        """Return a warning if the certificate is about to expire and the renewal fails; else ""."""
        if not self._why or not alarming(self._shows(), now()):
            return ""
        until = self._shows().not_after.isoformat(timespec="seconds")
        return f"the certificate expires at {until}, and the renewal fails: {self._why}"

    async def _renew(self) -> None:
        due = self._due() <= now()
        joins = await self._must_join()
        answered = await self._call_program(
            EnrolmentRequestKind.JOIN if joins else EnrolmentRequestKind.RENEW
        )
        if joins and due and isinstance(answered, EnrolmentFailure):
            # A new token that is refused does not make the present certificate invalid, so renew that.
            renewed = await self._call_program(EnrolmentRequestKind.RENEW)
            if isinstance(renewed, EnrolmentResult):
                _log.warning(
                    "new join failed; the present certificate was renewed instead", reason=answered.why
                )
                joins, answered = False, renewed
        if isinstance(answered, EnrolmentResult):
            taken = await (self._put_joined(answered) if joins else self._put(answered))
            if taken:
                self._renew_after, self._retry = None, self._not_at_once()
                self._failures, self._why = 0, ""
                _log.info("certificate renewed", serial=self._shows().serial)
                return
            answered = EnrolmentFailure(
                "the new certificate cannot be used; the log lines before this one have the reason"
            )
        self._failures, self._why = self._failures + 1, answered.why
        shows, at = self._shows(), now()
        wait = retry_after(self._failures, shows.not_after - at, random.random())  # noqa: S311 - no secret
        # A refused token is tried again when the certificate is due.
        self._retry = None if answered.refused and not due else monotonic() + wait.total_seconds()
        say = _log.error if alarming(shows, at) else _log.warning
        until = shows.not_after.isoformat(timespec="seconds")
        say(
            "certificate not renewed",
            reason=answered.why,
            ends=until,
            again_in=round(wait.total_seconds(), 1),
        )

    def _not_at_once(self) -> float | None:
        """Return the time of the next renewal if a new certificate is due immediately (a wrong clock).

        Else None.
        """
        due = renew_at(self._shows())
        return None if due > now() else monotonic() + LEAST_BETWEEN.total_seconds()

    async def _trust(self) -> timedelta:
        """Fetch the trusted roots from the control plane; return the time until the next such request."""
        answered = await self._call_program(EnrolmentRequestKind.TRUST)
        drawn = random.random()  # noqa: S311 - no secret
        if isinstance(answered, EnrolmentFailure):
            _log.warning("request for roots failed; the agent tries again", reason=answered.why)
            if self._retry is None and await self._must_join():
                self._retry = monotonic()
            self._untold += 1
            return retry_after(self._untold, timedelta.max, drawn)
        self._renew_after = min(answered.renew_after, self._due())
        authority, domain = answered.authority, answered.trust_domain
        if authority and not await self._replace(
            lambda: files.put_authority(self._directory, authority, domain)
        ):
            self._untold += 1
            return retry_after(self._untold, timedelta.max, drawn)
        self._untold = 0
        if authority:
            _log.info("roots loaded", told_by=str(self._renewal_servers.order()[0]))
            return timedelta(seconds=1)  # the next request confirms the roots
        return timedelta(seconds=max(1, answered.ask_again) * (0.75 + drawn / 2))

    async def _must_join(self) -> bool:
        """Return whether the proxy must join: without a usable certificate, or with a new join token."""
        settings = self._settings
        if not settings.join or settings.proof is None:
            return False
        if not files.has_pair(self._directory):
            return True
        if settings.kind == _TOKEN:
            with contextlib.suppress(OSError, StateError):
                token = _identifier(settings.proof.read_bytes())
                if token and token != files.joined_by(self._directory):
                    return True
        ends = await self._ends()
        return ends is not None and now() > ends

    async def _can_wait(self) -> bool:
        """Return whether a valid certificate exists, so that joining can wait."""
        if not self._renewal_servers or not files.has_pair(self._directory):
            return False
        ends = await self._ends()
        return ends is not None and now() <= ends

    async def _ends(self) -> datetime | None:
        """Return the expiry of the certificate in the credentials directory; None if unknown."""
        try:
            domain = self._settings.trust_domain
            credentials = await reading.read(self._directory, shared=self._shared, configured=domain)
        except AgentError:
            return None  # ProxyFiles reports the fault
        return credentials.shows.certificate.not_after

    async def _put_joined(self, obtained: EnrolmentResult, *, at_start: bool = False) -> bool:
        by = self._token if self._settings.kind == _TOKEN else self._settings.kind

        def put() -> None:
            files.put(self._directory, obtained.chain, obtained.authority, obtained.trust_domain)
            files.note_joined(self._directory, by)

        if at_start:
            await asyncio.to_thread(put)
        elif not await self._replace(put):
            return False
        _log.info("machine joined the mesh", control_plane=str(self._join_servers.order()[0]))
        return True

    async def _put(self, obtained: EnrolmentResult) -> bool:
        new = obtained.chain, obtained.authority, obtained.trust_domain
        return await self._replace(lambda: files.put(self._directory, *new))

    async def _call_program(self, asking: EnrolmentRequestKind) -> Answer:
        """Call the program, and log a warning about a wrong clock; failures are returned, not raised."""
        try:
            question = await asyncio.to_thread(self._question, asking)
        except (AgentError, OSError, StateError) as error:
            return _failure(error)
        if asking is EnrolmentRequestKind.JOIN:
            self._token = _identifier(question.proof)
        answered = await self._ask_in_turn(question)
        if isinstance(answered, EnrolmentResult) and (words := clock_words(answered.clock, now())):
            _log.warning("clock difference found; correct the clock that is wrong", said=words)
        return answered

    async def _ask_in_turn(self, question: Question) -> Answer:
        """Ask one server after another until one has a result."""
        servers, failures = self._servers(question.asking), dict[HostPort, EnrolmentFailure]()
        for at in servers.order():
            try:
                answered = await self._ask_program(replace(question, at=at))
            except (AgentError, OSError, StateError) as error:
                answered = _failure(error)
            if isinstance(answered, EnrolmentResult):
                servers.answered(at)
                if failures:
                    why = combined(failures).why
                    _log.warning("request failed, but another server answered", reason=why, server=str(at))
                return answered
            failures[at] = answered
        return combined(failures)

    def _servers(self, asking: EnrolmentRequestKind) -> ServerRotation:
        return self._join_servers if asking is EnrolmentRequestKind.JOIN else self._renewal_servers

    def _question(self, asking: EnrolmentRequestKind) -> Question:
        """Return the request for the first server; raise an error if a file cannot be used."""
        settings, servers = self._settings, self._servers(asking)
        if not servers:
            raise AgentError("the address for the renewal is unknown; give --renewal")
        at = servers.order()[0]
        if asking is not EnrolmentRequestKind.JOIN or settings.proof is None:
            return Question(asking, at, self._directory, trust_domain=settings.trust_domain)
        if settings.kind == _TOKEN and not self._shared and (words := exposure_of(settings.proof)):
            raise AgentError(f"{words}, or use --shared-credentials if other users may have access")
        proof = settings.proof.read_bytes()
        authority, domain = b"", settings.trust_domain
        if settings.authority is not None:
            authority = settings.authority.read_bytes()
            domain = domain or domain_beside(settings.authority.parent)
        return Question(asking, at, self._directory, settings.kind, proof, authority, domain)


def _failure(error: Exception) -> EnrolmentFailure:
    return EnrolmentFailure(" ".join(str(error).split()))


def _clock_at(moment: float) -> datetime:
    """Convert a time of the monotonic clock to wall-clock time; wrong if the wall clock is set meanwhile."""
    return now() + timedelta(seconds=moment - monotonic())


def _identifier(token: bytes) -> str:
    """Return the public part of a join token."""
    return token.decode("ascii", "replace").strip().partition(".")[0]


async def _program(question: Question) -> Answer:
    """Let a short-lived subprocess make an enrolment request; return the answer, or raise ApartFailed."""
    result = await apart(PROGRAM, question, SECONDS, "the subprocess for enrolment")
    if isinstance(result, EnrolmentResult | EnrolmentFailure):
        return result
    raise ApartFailed(f"the subprocess for enrolment returned a {type(result).__name__}")
