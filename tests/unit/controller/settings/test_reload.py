"""Tests of the reload of settings: applied changes, changes that need a restart, and errors."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from meshwright.controller.errors import SettingsError
from meshwright.controller.settings.reload import IN_PLACE, Reload, SettingsReloader, other
from meshwright.controller.settings.settings import Settings, load


def _load(**others: object) -> Settings:
    return load({"mesh": "m", "state": "s"} | others)


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_each_changed_setting_is_applied_or_needs_a_restart(name: str) -> None:
    """A change of any setting is in one of the two lists, so that none is ignored silently."""
    before = _load()
    after = before.model_copy(update={name: "another"})
    holds, waits = other(before, after)
    assert (holds, waits) == (((name,), ()) if name in IN_PLACE else ((), (name,)))


def test_applicable_changes_are_applied_and_others_keep_their_value() -> None:
    """A second reload with the same settings applies no change."""
    reloading, applied = SettingsReloader(_load()), list[tuple[Settings, Sequence[str]]]()
    with capture_logs() as logs:
        for _ in range(2):
            reloading.take(_load(quiet_seconds="0.5", max_streams="7"), lambda *given: applied.append(given))
    assert [log["changed"] for log in logs] == [{"quiet_seconds": 0.5}, {}]
    assert [log["needs_restart"] for log in logs] == [["max_streams"]] * 2
    settings, _ = applied[0]
    assert (settings.quiet_seconds, settings.max_streams) == (0.5, 20_000)
    assert [changed for _, changed in applied] == [("quiet_seconds",), ()]


async def test_failed_reload_changes_no_setting_and_can_be_repeated() -> None:
    """An error is logged and the settings are kept; the next reload is applied."""
    answers: list[Settings | None] = [None, _load(log_level="debug")]

    def read() -> Settings:
        settings = answers.pop(0)
        if settings is None:
            raise SettingsError("log_level in the config file is 'x'")
        return settings

    reload, applied = Reload(asyncio.Event(), read), asyncio.Event()
    reloading = SettingsReloader(_load())
    with capture_logs() as logs:
        running = asyncio.create_task(reloading.run(reload, lambda *_: applied.set()))
        reload.requested.set()
        while not logs:
            await asyncio.sleep(0)
        assert not applied.is_set()
        reload.requested.set()
        await asyncio.wait_for(applied.wait(), 30)
        running.cancel()
    assert [log["log_level"] for log in logs] == ["error", "info"]
    assert reloading.settings.log_level == "debug"
    assert Path("m") == reloading.settings.mesh
