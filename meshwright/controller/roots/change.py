"""Change of the mesh's root in operation: steps on command, taken when all participants are ready."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from datetime import datetime, timedelta
from typing import Final, ParamSpec

import structlog

from certs.errors import CertificateError, RequestError, StateError
from certs.ledger.contract import Ledger
from certs.roots.authority import ChangingAuthority
from certs.roots.authority_store import Overtaken
from certs.roots.proxy_evidence import RootAcknowledgements
from certs.roots.rotation import Rotation, aborted, advanced, without
from certs.roots.status import ChangeStatus, given_up, status_of
from meshwright.controller.roots.rule import ManualApproval, Rule

P = ParamSpec("P")

LOOK_SECONDS: Final = 2.0
"""Seconds between two checks of the participants."""

_log = structlog.get_logger("controller.root_change")


class RootChange:
    """Change of the root, one step at a time.

    `read_acknowledgements` returns the acknowledgements of proxies. After each step `stepped` informs all
    parts that depend on CA certificates. A step that raises CertificateError changes nothing. `hold_reason`
    is a reason against all steps, for example a lost ledger: without a ledger the participants are unknown,
    and a step would wait for none of them. `rule` decides about the wanted CAs; if objects declare them,
    commands other than `give_up` are refused.
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
        await self.take(aborted)
        return await self._status_after()

    async def take(self, act: Callable[[Rotation, datetime], Rotation]) -> None:
        """Replace the root rotation in progress by the result of `act`.

        Raise RequestError without a rotation, or if `act` does not allow the step.
        """
        async with self._turn:
            await self._step(act(self._under_way(), await self._moment()))

    async def give_up(self, proxies: Collection[str], older_than: timedelta | None = None) -> ChangeStatus:
        """Stop waiting for these proxies, and for proxies silent for `older_than`.

        The webhook may be among them, because API servers that cannot verify it let requests through. So may
        Pods before joining: they wait until they know the new CA. Raises RequestError for a proxy that the
        change does not wait for, because the name may be mistyped. For example, a scrapped machine would
        otherwise hold up the change for ever.
        """
        async with self._turn:
            rotation, now = self._under_way(), self._clock()
            names = given_up(await self._change_status(rotation), proxies, older_than, now)
            await self._step(without(rotation, names, now))
        return await self._status_after()

    async def stepping(self) -> None:
        """Take each step as soon as all participants are ready, until cancelled; an error is logged once."""
        reason = ""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if self._authority.rotation is None and self._is_noted:
                continue
            try:
                async with self._turn:
                    await self._advance()
                reason = ""
            except CertificateError as error:
                if str(error) != reason:
                    _log.error("root change cannot advance; the server tries again", reason=str(error))
                reason = str(error)

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

    async def _advance(self) -> None:
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
        await self._step(advanced(rotation, await self._moment()))

    async def _step(self, rotation: Rotation | None) -> None:
        await self._apply(self._authority.step, rotation, self._clock())
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
            await asyncio.to_thread(step, *args, **kwargs)
        except Overtaken:
            self._is_noted = False
            await self._announce_step()
            raise
        await self._announce_step()

    async def _announce_step(self) -> None:
        rotation = self._authority.rotation
        if rotation is None:
            _log.info("root change finished", signer=self._authority.fingerprint)
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

    async def _change_status(self, rotation: Rotation) -> ChangeStatus:
        acknowledgements, now, held = (
            await self._read_acknowledgements(),
            self._clock(),
            self._rule.hold_reason(rotation),
        )

        def found() -> ChangeStatus:  # the ledger is a file, and chains are verified
            return status_of(rotation, self._ledger.entries(), acknowledgements, self._authority, held, now)

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
