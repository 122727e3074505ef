"""Synchronisation of the hosts file with Envoy's listeners."""

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
"""Counters that change with every listener: small, while the listeners may take megabytes."""

_log = structlog.get_logger("agent")


@dataclass(frozen=True, slots=True)
class HostNameSettings:
    """The hosts file, and the proxy that provides the callable services for the file."""

    admin: EnvoyAdmin
    file: HostsFile
    namespace: Namespace
    cluster_domain: str

    async def run(self) -> None:
        """Update the file until cancelled.

        Then remove the block, because the addresses do not answer any more.
        """
        known = ""
        try:
            while True:
                known = await self._look(known)
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            self._put(())

    async def _look(self, known: str) -> str:
        """Write the hosts file if listeners have changed; return Envoy's counters of listener changes."""
        try:
            seen = await self.admin.text(_CHANGES_PATH)
            if seen != known:
                result = called(listeners(await self.admin.json(LISTENERS_PATH)))
                self._put(lines(result, self.namespace, self.cluster_domain))
        except AdminUnreachable:  # during a replacement of Envoy the last content stays
            return ""
        return seen

    def _put(self, wanted: tuple[str, ...]) -> None:
        try:
            if self.file.put(wanted):
                _log.info("hosts file written", path=str(self.file.path), lines=len(wanted))
        except (OSError, UnicodeDecodeError) as error:
            _log.error("hosts file not written", path=str(self.file.path), reason=str(error))
