"""Change of the mesh's root in operation: steps on command, taken when all participants are ready."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final, ParamSpec, Protocol

import structlog

from certs.errors import CertificateError, RequestError, StateError
from certs.ledger.contract import Ledger
from certs.roots.authority import ChangingAuthority
from certs.roots.authority_store import AuthorityStore, FormerLeaderError, Overtaken
from certs.roots.evidence import Part
from certs.roots.proxy_evidence import RootAcknowledgements, facts
from certs.roots.rotation import Rotation, aborted, advanced, without
from certs.roots.server_report import NO_REPORTS, Reports, ServerReport, lacking, report
from certs.roots.status import ChangeStatus, given_up, status_of
from meshwright.controller.roots.rule import ManualApproval, Rule

P = ParamSpec("P")

LOOK_SECONDS: Final = 2.0
"""Seconds between two checks of the participants."""

MISSED_SECONDS: Final = 10.0
"""Seconds after which a server looks for a step of another server that it may not have heard of."""

_ANNOUNCED: Final = 20
_NUMBERS: Final = re.compile(r"\d+")

_log = structlog.get_logger("controller.root_change")


class OtherServers(Protocol):
    """The other servers of the mesh, with which this one exchanges reports."""

    def reports(self, rotation: Rotation) -> Reports:
        """Return the reports of the other servers that are here; does not wait."""

    def issued(self) -> tuple[str, ...]:
        """Return the serials of the proxy certificates that this server has issued last."""

    def give(self, own: ServerReport, rotation: Rotation) -> None:
        """Give the others the report of this server. Call in a thread; raises StateError."""

    def take_back(self) -> None:
        """Remove the report of this server after a change. Call in a thread; raises StateError."""

    def has_ended_recently(self) -> bool:
        """Return whether another server has ended a moment ago: its proxies may be on the way to others."""

    def announce(self, step: str, holdouts: Collection[str]) -> None:
        """Announce the step that this server has taken over, and proxies here that hold up the next one."""


class RootChange:
    """Change of the root, one step at a time.

    `read_acknowledgements` returns the acknowledgements of proxies. After each step `stepped` informs all
    parts that depend on CA certificates. A step that raises CertificateError changes nothing. `hold_reason`
    is a reason against all steps, for example a lost ledger: without a ledger the participants are unknown,
    and a step would wait for none of them. `rule` decides about the wanted CAs; if objects declare them,
    commands other than `give_up` are refused.

    With `others`, the other servers of the mesh, each server runs `following`, and the leader `stepping`.
    Commands are accepted by every server: their writes are compared with the step that the server knows.
    """

    def __init__(
        self,
        authority: ChangingAuthority,
        ledger: Ledger,
        read_acknowledgements: Callable[[], Awaitable[RootAcknowledgements]],
        stepped: Callable[[], Awaitable[None]],
        clock: Callable[[], datetime],
        hold_reason: str = "",
        rule: Rule | None = None,
        others: OtherServers | None = None,
    ) -> None:
        self._authority = authority
        self._ledger = ledger
        self._read_acknowledgements = read_acknowledgements
        self._stepped = stepped
        self._clock = clock
        self._hold_reason = hold_reason
        self._rule = rule or ManualApproval()
        self._turn = asyncio.Lock()
        self._is_noted = True
        self._others = others
        self._announced = self._present()

    @property
    def stage(self) -> int:
        """Return the number of the present stage, from 1; 0 without a change."""
        rotation = self._authority.rotation
        return 0 if rotation is None else rotation.stage.number

    async def status(self) -> ChangeStatus:
        """Return the status of the change; raise StateError if the ledger cannot be read."""
        rotation = self._authority.rotation
        if rotation is None:
            return ChangeStatus(None)
        return await self._change_status(rotation)

    async def begin(self) -> ChangeStatus:
        """Begin a change on command; raise RequestError if one is in progress, or objects declare the CAs."""
        self._require_command()
        await self.catch_up()
        await self.begin_by(self._authority.begin)
        return await self._status_after()

    async def begin_by(self, begin: Callable[[datetime, datetime], Rotation]) -> None:
        """Begin a change with `begin(now, since)`; raise RequestError if one is in progress."""
        async with self._turn:
            self._require_ledger()
            if (rotation := self._authority.rotation) is not None:
                since = rotation.since.isoformat()
                raise RequestError(
                    f"a rotation of the root is in progress ({rotation.stage}, since {since}): "
                    "wait until it is done, or abort it"
                )
            await self._apply(begin, self._clock(), await self._moment())

    async def abort(self) -> ChangeStatus:
        """Abort the change on command.

        Raise RequestError if there is no change, or if it is being aborted already.
        """
        self._require_command()
        await self.catch_up()
        await self.take(aborted)
        return await self._status_after()

    async def take(
        self, act: Callable[[Rotation, datetime], Rotation], store: AuthorityStore | None = None
    ) -> None:
        """Replace the root rotation in progress by the result of `act`.

        `store` is that of a leader. Raise RequestError without a rotation, or if `act` does not allow the
        step.
        """
        async with self._turn:
            await self._step(act(self._under_way(), await self._moment()), store)

    async def give_up(self, proxies: Collection[str], older_than: timedelta | None = None) -> ChangeStatus:
        """Stop waiting for these proxies, and for proxies silent for `older_than`.

        The webhook may be among them, because API servers that cannot verify it let requests through. So may
        Pods before joining: they wait until they know the new CA. Raises RequestError for a proxy that the
        change does not wait for, because the name may be mistyped. For example, a scrapped machine would
        otherwise hold up the change for ever.
        """
        await self.catch_up()
        async with self._turn:
            rotation, now = self._under_way(), self._clock()
            status = await self._change_status(rotation)
            if older_than is not None:
                self._require_all_servers(status)
            names = given_up(status, proxies, older_than, now)
            await self._step(without(rotation, names, now))
        return await self._status_after()

    def _require_all_servers(self, status: ChangeStatus) -> None:
        """Raise RequestError while a proxy that is connected to another server may seem to be silent.

        The time of the last use of a certificate is known only to the server that the proxy is connected to.
        """
        names = [part.detail for part in status.behind if part.part is Part.OTHER_SERVER]
        if names:
            raise RequestError(
                f"the server {names[0]} has not reported which proxies are connected to it: give up proxies "
                "by name, or repeat the command after it has"
            )
        if self._others is not None and self._others.has_ended_recently():
            raise RequestError(
                "a server of the mesh has ended, or this one has begun, less than a minute ago, and its "
                "proxies may not be connected yet: repeat the command in a minute, or give up proxies by name"
            )

    async def stepping(self, store: AuthorityStore | None = None) -> None:
        """Take each step as soon as all participants are ready, until cancelled; an error is logged once.

        `store` is the store of a leader. Raises FormerLeaderError if another server leads by now.
        """
        reason = ""
        if store is not None:
            self._is_noted = False  # the former leader may have ended between a step and the note
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if self._authority.rotation is None and self._is_noted:
                continue
            try:
                async with self._turn:
                    await self._advance(store)
                reason = ""
            except FormerLeaderError:
                raise
            except CertificateError as error:
                if str(error) != reason:
                    _log.error("root change cannot advance; the server tries again", reason=str(error))
                reason = str(error)

    async def following(self, changed: asyncio.Event) -> None:
        """Take over steps of other servers, and report to the others, until cancelled; log an error once.

        `changed` is set when another server may have taken a step.
        """
        reason, again = "", 0.0
        now = asyncio.get_running_loop().time
        while True:
            try:
                if changed.is_set() or now() >= again:
                    changed.clear()
                    await self.catch_up()
                    again = now() + MISSED_SECONDS
                await self._report()
                reason = ""
            except CertificateError as error:
                if _NUMBERS.sub("", str(error)) != reason:  # a number may be the present time
                    _log.error("root change of another server cannot be followed yet", reason=str(error))
                reason, again = _NUMBERS.sub("", str(error)), 0.0
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await changed.wait()

    async def catch_up(self) -> None:
        """Take over the step of another server, if it has taken one. Raises StateError."""
        if self._others is None:
            return
        async with self._turn:
            await self._done(asyncio.to_thread(self._authority.look, self._clock()))
            if self._present() != self._announced:
                await self._announce_step()

    async def _report(self) -> None:
        """Give the other servers the facts about the proxies that are here."""
        others, rotation = self._others, self._authority.rotation
        if others is None:
            return
        if rotation is None:
            others.announce("", ())
            await asyncio.to_thread(others.take_back)
            return
        acknowledgements = await self._read_acknowledgements()

        def given() -> tuple[ServerReport, Sequence[str]]:
            known = facts(rotation, acknowledgements, self._authority)
            result = report(rotation, acknowledgements.ours, known, others.issued())
            others.give(result, rotation)
            return result, lacking(rotation, known)

        result, names = await asyncio.to_thread(given)
        others.announce(result.step, names[:_ANNOUNCED])
        if result.is_behind:
            await self._stepped()  # parts that failed to follow the last step try again

    async def _status_after(self) -> ChangeStatus:
        """Return the status after a successful command.

        If the ledger cannot be read, raise StateError with the remark about the success.
        """
        try:
            return await self.status()
        except StateError as error:
            raise StateError(
                f"the command is done, but the status of the rotation cannot be read: {error}"
            ) from error

    async def _moment(self) -> datetime:
        """Return the beginning of a stage, not before the last issued certificate.

        If the clock was set back, a certificate issued before would otherwise count as issued in the new
        stage, and its holder would not be waited for.
        """
        last = await asyncio.to_thread(self._ledger.last_issued_at)
        return self._clock() if last is None else max(self._clock(), last)

    async def _advance(self, store: AuthorityStore | None) -> None:
        if not self._is_noted:
            await asyncio.to_thread(self._note_signer)
        rotation = self._authority.rotation
        if rotation is None:
            return
        change_status = await self._change_status(rotation)
        if change_status.is_server_behind:
            await self._stepped()  # parts that failed to follow the last step try again
        if change_status.is_blocked:
            return
        # Without the ledger a step would not wait for the proxies that it does not list.
        self._require_ledger()
        await asyncio.to_thread(self._note_signer)
        await self._step(advanced(rotation, await self._moment()), store)

    async def _step(self, rotation: Rotation | None, store: AuthorityStore | None = None) -> None:
        await self._apply(self._authority.step, rotation, self._clock(), store)
        # `stepping` repeats the note until the ledger has the new signer.
        self._is_noted = False
        try:  # after the step itself; an interrupted server repeats this at its next start
            await asyncio.to_thread(self._note_signer)
        except StateError as error:
            _log.warning(
                "ledger does not record the new signing root yet; the server tries again", reason=str(error)
            )

    async def _apply(self, step: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Take a step in a thread, and inform all parts that depend on CA certificates.

        If another server has taken a step first, that step is applied: the parts are informed of it, and
        `stepping` notes its signer. Then Overtaken is raised.
        """
        try:
            await self._done(asyncio.to_thread(step, *args, **kwargs))
        except Overtaken:
            self._is_noted = False
            await self._announce_step()
            raise
        await self._announce_step()

    async def _done(self, work: Coroutine[object, object, object]) -> None:
        """Await the work of a thread, also after a cancellation.

        Otherwise the next caller would use the authority while the thread still changes it.
        """
        task = asyncio.ensure_future(work)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            try:
                await task
            except CertificateError as error:
                _log.warning(
                    "last step of the root change failed at the end of the leadership", reason=str(error)
                )
            raise

    def _present(self) -> tuple[str, Rotation | None]:
        return self._authority.fingerprint, self._authority.rotation

    async def _announce_step(self) -> None:
        fingerprint, rotation = present = self._present()
        if rotation is None:
            _log.info("root change finished", signer=fingerprint)
        else:
            _log.info(
                "root change advanced",
                stage=rotation.stage.value,
                signer=rotation.signer,
                other=rotation.other,
                aborted=rotation.aborted,
                given_up=len(rotation.given_up),
            )
        await self._stepped()
        self._announced = present

    async def _change_status(self, rotation: Rotation) -> ChangeStatus:
        # The reports before the ledger, which must know all certificates that were issued before them.
        others = NO_REPORTS if self._others is None else self._others.reports(rotation)
        acknowledgements, now = await self._read_acknowledgements(), self._clock()
        held = self._rule.hold_reason(rotation)

        def found() -> ChangeStatus:  # the ledger is a file, and chains are verified
            return status_of(rotation, self._ledger, acknowledgements, self._authority, held, now, others)

        return await asyncio.to_thread(found)

    def _note_signer(self) -> None:
        if self._ledger.authority() != self._authority.fingerprint:
            self._ledger.change_authority(self._authority.fingerprint)
        self._is_noted = True

    def _require_command(self) -> None:
        if text := self._rule.refusal():
            raise RequestError(text)

    def _require_ledger(self) -> None:
        if self._hold_reason:
            raise StateError(self._hold_reason)

    def _under_way(self) -> Rotation:
        self._require_ledger()
        rotation = self._authority.rotation
        if rotation is None:
            raise RequestError("no root is being changed")
        return rotation
