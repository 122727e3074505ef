"""Keeps the machine's hosts file in step with what Envoy has accepted."""

import asyncio
from dataclasses import dataclass
from typing import Final

import structlog

from meshwright.agent.envoy.admin import AdminUnreachable, EnvoyAdmin
from meshwright.agent.envoy.listeners import LISTENERS_PATH, listeners
from meshwright.agent.hosts.file import HostsFile, called, lines
from meshwright.mesh.names import Namespace

LOOK_SECONDS: Final = 1.0
_CHANGES_PATH: Final = "/stats?filter=^listener_manager.(listener_|total_listeners_)"
"""Counters that move whenever a listener does: small, where the listeners themselves may be megabytes."""

_log = structlog.get_logger("agent")


@dataclass(frozen=True, slots=True)
class HostNameSettings:
    """Whose names are kept, and where."""

    admin: EnvoyAdmin
    file: HostsFile
    namespace: Namespace
    cluster_domain: str

    async def run(self) -> None:
        """Keep the file until cancelled; then take our lines out of it, for nobody answers there any more."""
        known = ""
        try:
            while True:
                known = await self._look(known)
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            self._put(())

    async def _look(self, known: str) -> str:
        """Look whether listeners have changed, and write if they have; return what was seen."""
        try:
            seen = await self.admin.text(_CHANGES_PATH)
            if seen != known:
                found = called(listeners(await self.admin.json(LISTENERS_PATH)))
                self._put(lines(found, self.namespace, self.cluster_domain))
        except AdminUnreachable:  # between two Envoys; what stands in the file was true
            return ""
        return seen

    def _put(self, wanted: tuple[str, ...]) -> None:
        try:
            if self.file.put(wanted):
                _log.info("hosts file written", path=str(self.file.path), lines=len(wanted))
        except (OSError, UnicodeDecodeError) as error:
            _log.error("hosts file not written", path=str(self.file.path), reason=str(error))
