"""Reload of settings while the server runs: some take effect at once, others need a restart."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final

import structlog

from meshwright.controller.errors import SettingsError
from meshwright.controller.settings.settings import Settings

Apply = Callable[[Settings, Sequence[str]], None]
"""Function that applies settings; the names are those of changed settings."""

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
"""Settings that take effect at once; all others need a restart."""

_log = structlog.get_logger("controller.reloading")


@dataclass(frozen=True, slots=True)
class Reload:
    """Request to read the settings again: `requested` is set for it, and `read` raises SettingsError.

    Reading and applying happen inside the context `meanwhile`.
    """

    requested: asyncio.Event
    read: Callable[[], Settings]
    meanwhile: Callable[[], AbstractContextManager[None]] = nullcontext


def other(before: Settings, after: Settings) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of changed settings, sorted: those that take effect at once, and the others."""
    names = [
        model_field
        for model_field in sorted(Settings.model_fields)
        if getattr(before, model_field) != getattr(after, model_field)
    ]
    return tuple(n for n in names if n in IN_PLACE), tuple(n for n in names if n not in IN_PLACE)


class SettingsReloader:
    """The server's active settings: the settings at the start, with changes by later reloads."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def take(self, read: Settings, apply: Apply) -> None:
        """Apply new settings as far as possible, and log the changes and the settings that need a restart."""
        holds, waits = other(self.settings, read)
        # Settings that need a restart keep their old value here, so the next reload reports them again.
        self.settings = self.settings.model_copy(update={name: getattr(read, name) for name in holds})
        apply(self.settings, holds)
        fields = {"changed": {name: _shown(self.settings)[name] for name in holds}}
        if waits:
            _log.warning("settings reloaded; some need a restart", **fields, needs_restart=list(waits))
        else:
            _log.info("settings reloaded", **fields)

    async def run(self, reload: Reload, apply: Apply) -> None:
        """Read the settings again at each request of a reload, until cancelled.

        Invalid settings are logged and ignored.
        """
        while True:
            await reload.requested.wait()
            reload.requested.clear()
            with reload.meanwhile():
                await self._again(reload, apply)

    async def _again(self, reload: Reload, apply: Apply) -> None:
        try:
            read = await asyncio.to_thread(reload.read)
        except SettingsError as error:
            _log.error("settings not reloaded; the settings in force stay", reason=str(error))
            return
        self.take(read, apply)


def _shown(settings: Settings) -> Mapping[str, object]:
    return settings.model_dump(mode="json")
