"""Settings that are read again while the server runs: which then hold, and which need a restart."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final

import structlog

from meshwright.controller.errors import SettingsError
from meshwright.controller.settings.settings import Settings

Apply = Callable[[Settings, Sequence[str]], None]
"""Has settings hold, of which these names are others than before."""

IN_PLACE: Final = frozenset(
    {
        "endpoint_longest_seconds",
        "endpoint_quiet_seconds",
        "log_level",
        "longest_seconds",
        "proxy_certificate_days",
        "proxy_claim_days",
        "quiet_seconds",
    }
)
"""What can become another while the server runs; everything else is for a restart."""

_log = structlog.get_logger("controller.reloading")


@dataclass(frozen=True, slots=True)
class Reload:
    """How a server is told to read its settings again: `asked` is set for it, `read` raises SettingsError.

    It reads them, and has them hold, within `meanwhile`.
    """

    asked: asyncio.Event
    read: Callable[[], Settings]
    meanwhile: Callable[[], AbstractContextManager[None]] = nullcontext


def other(before: Settings, after: Settings) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the settings that are others, sorted: those that can hold at once, and the rest."""
    names = [each for each in sorted(Settings.model_fields) if getattr(before, each) != getattr(after, each)]
    return tuple(n for n in names if n in IN_PLACE), tuple(n for n in names if n not in IN_PLACE)


class SettingsReloader:
    """The settings in force, and their change; `settings` is what was read last of those that hold."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def take(self, read: Settings, apply: Apply) -> None:
        """Have new settings hold as far as they can, and say what holds and what needs a restart."""
        holds, waits = other(self.settings, read)
        self.settings = self.settings.model_copy(update={name: getattr(read, name) for name in holds})
        apply(self.settings, holds)
        said = {"changed": {name: _shown(self.settings)[name] for name in holds}}
        if waits:
            _log.warning("settings read again; some need a restart", **said, needs_restart=list(waits))
        else:
            _log.info("settings read again", **said)

    async def run(self, reload: Reload, apply: Apply) -> None:
        """Read them whenever asked, until cancelled; what cannot be read changes nothing, and is said."""
        while True:
            await reload.asked.wait()
            reload.asked.clear()
            with reload.meanwhile():
                await self._again(reload, apply)

    async def _again(self, reload: Reload, apply: Apply) -> None:
        try:
            read = await asyncio.to_thread(reload.read)
        except SettingsError as error:
            _log.error("settings not read again; what was in force goes on", reason=str(error))
            return
        self.take(read, apply)


def _shown(settings: Settings) -> Mapping[str, object]:
    return settings.model_dump(mode="json")
