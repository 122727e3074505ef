"""Changing the mesh's root while it serves: steps on command, and on evidence from everyone concerned."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from datetime import datetime, timedelta
from typing import Final, Protocol

import structlog

from certs.errors import CertificateError, RequestError, StateError
from certs.ledger.contract import Ledger
from certs.roots.authority import ChangingAuthority
from certs.roots.proxy_evidence import RootAcknowledgements
from certs.roots.rotation import Rotation, aborted, advanced, without
from certs.roots.status import ChangeStatus, given_up, status_of

LOOK_SECONDS: Final = 2.0
"""So often it is looked whether anybody still holds the next step back."""

_log = structlog.get_logger("controller.root_change")


class Rule(Protocol):
    """Who says which roots there are to be, if anybody does."""

    def refusal(self) -> str:
        """Return why commands may not change the root; empty where they may."""

    def held(self, rotation: Rotation) -> str:
        """Return why the next stage is not wanted yet; empty where it is."""


class ManualApproval:
    """Leaves it to commands."""

    def refusal(self) -> str:
        """Return nothing."""
        return ""

    def held(self, rotation: Rotation) -> str:
        """Return nothing."""
        del rotation
        return ""


class RootChange:
    """Takes the steps of a change of the root, one at a time, whoever asks.

    `said` returns what proxies say now. `stepped` has whatever depends on
    roots look at them, after each step. Steps raise CertificateError, and then nothing is other. `held` is
    why none can be taken at all, if so: without a ledger nobody is known, and nobody would be waited for.
    `rule` is who says which roots there are: if it says any, commands are refused, but to give up.
    """

    def __init__(
        self,
        authority: ChangingAuthority,
        ledger: Ledger,
        said: Callable[[], Awaitable[RootAcknowledgements]],
        stepped: Callable[[], Awaitable[None]],
        clock: Callable[[], datetime],
        held: str = "",
        rule: Rule | None = None,
    ) -> None:
        self._authority = authority
        self._ledger = ledger
        self._said = said
        self._stepped = stepped
        self._clock = clock
        self._held = held
        self._rule = rule or ManualApproval()
        self._turn = asyncio.Lock()
        self._is_noted = True

    @property
    def stage(self) -> int:
        """Return the number of the stage that a change is at, from 1; 0 where there is none."""
        rotation = self._authority.rotation
        return 0 if rotation is None else rotation.stage.number

    async def status(self) -> ChangeStatus:
        """Return how it stands; raise StateError where the ledger cannot be read."""
        rotation = self._authority.rotation
        if rotation is None:
            return ChangeStatus(None)
        return await self._held_by(rotation)

    async def begin(self) -> ChangeStatus:
        """Begin a change to a new root on command; raise RequestError if there is one, or objects rule."""
        self._require_command()
        await self.begin_by(self._authority.begin)
        return await self._taken()

    async def begin_by(self, begin: Callable[[datetime, datetime], Rotation]) -> None:
        """Have the authority begin a change, now and since a moment; raise RequestError if there is one."""
        async with self._turn:
            self._require_ledger()
            if (rotation := self._authority.rotation) is not None:
                since = rotation.since.isoformat()
                raise RequestError(
                    f"the root is being changed already ({rotation.stage}, since {since}): wait for its end, "
                    "or abort it"
                )
            await asyncio.to_thread(begin, self._clock(), await self._moment())
            await self._have_stepped()

    async def abort(self) -> ChangeStatus:
        """Take the change back on command; raise RequestError if there is none, or it is being taken back."""
        self._require_command()
        await self.take(aborted)
        return await self._taken()

    async def take(self, act: Callable[[Rotation, datetime], Rotation]) -> None:
        """Have the change under way be another; raise RequestError where that cannot be."""
        async with self._turn:
            await self._step(act(self._under_way(), await self._moment()))

    async def give_up(self, proxies: Collection[str], older_than: timedelta | None = None) -> ChangeStatus:
        """Wait no longer for these proxies, by name, and for those last heard of so long ago.

        The webhook may be among them: what API servers cannot verify they let through, and no call is lost.
        So may pods that are yet to join: they wait until they know the new root.
        Raises RequestError where one of the names holds nothing back: it may be mistyped.
        """
        async with self._turn:
            rotation, now = self._under_way(), self._clock()
            names = given_up(await self._held_by(rotation), proxies, older_than, now)
            await self._step(without(rotation, names, now))
        return await self._taken()

    async def stepping(self) -> None:
        """Take each step as soon as nobody holds it back, until cancelled.

        What fails is tried again, and said once.
        """
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
                    _log.error("the change of the root is held up", reason=str(error))
                reason = str(error)

    async def _taken(self) -> ChangeStatus:
        """Return how it stands after what was asked for was done: it was, also where that cannot be read."""
        try:
            return await self.status()
        except StateError as error:
            raise StateError(f"it is done, and who holds it back cannot be said: {error}") from error

    async def _moment(self) -> datetime:
        """Return when a stage begins: no certificate that there is already counts as issued in it.

        A clock that was set back would have it so, and nobody be waited for who holds one.
        """
        last = await asyncio.to_thread(self._ledger.last_issued_at)
        return self._clock() if last is None else max(self._clock(), last)

    async def _advance(self) -> None:
        if not self._is_noted:
            await asyncio.to_thread(self._note_signer)
        rotation = self._authority.rotation
        if rotation is None:
            return
        found = await self._held_by(rotation)
        if found.is_server_behind:
            await self._stepped()  # what it could not make anew after the step
        if found.is_held:
            return
        self._require_ledger()
        await asyncio.to_thread(self._note_signer)
        await self._step(advanced(rotation, await self._moment()))

    async def _step(self, rotation: Rotation | None) -> None:
        await asyncio.to_thread(self._authority.step, rotation, self._clock())
        await self._have_stepped()
        self._is_noted = False
        try:  # after it is so: an opening takes it over as well
            await asyncio.to_thread(self._note_signer)
        except StateError as error:
            _log.warning("the ledger does not say yet which root signs", reason=str(error))

    async def _have_stepped(self) -> None:
        rotation = self._authority.rotation
        if rotation is None:
            _log.info("root changed", signer=self._authority.fingerprint)
        else:
            _log.info(
                "root change",
                stage=rotation.stage.value,
                signer=rotation.signer,
                other=rotation.other,
                aborted=rotation.aborted,
                given_up=len(rotation.given_up),
            )
        await self._stepped()

    async def _held_by(self, rotation: Rotation) -> ChangeStatus:
        said, now, held = await self._said(), self._clock(), self._rule.held(rotation)

        def found() -> ChangeStatus:  # the ledger is a file, and chains are verified
            return status_of(rotation, self._ledger.entries(), said, self._authority, held, now)

        return await asyncio.to_thread(found)

    def _note_signer(self) -> None:
        if self._ledger.authority() != self._authority.fingerprint:
            self._ledger.change_authority(self._authority.fingerprint)
        self._is_noted = True

    def _require_command(self) -> None:
        if said := self._rule.refusal():
            raise RequestError(said)

    def _require_ledger(self) -> None:
        if self._held:
            raise StateError(self._held)

    def _under_way(self) -> Rotation:
        self._require_ledger()
        rotation = self._authority.rotation
        if rotation is None:
            raise RequestError("no root is being changed")
        return rotation
