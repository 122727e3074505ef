"""Verdicts of the debug pages for their index, each computed from as little data as possible."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from meshwright.admin.html.looks import mesh, policies, proxies, pushes, traffic
from meshwright.admin.html.looks.certificates import of_certificates
from meshwright.admin.html.tones import Verdict
from meshwright.admin.pages import debug
from meshwright.admin.pages.mesh.certificates import certificates
from meshwright.admin.pages.mesh.sources import sources
from meshwright.admin.pages.mesh.traffic import stat
from meshwright.admin.pages.proxies.proxy import listed
from meshwright.admin.pages.proxies.streams import streams
from meshwright.admin.readers import MeshReading
from meshwright.traffic.statistics import RowKind


@dataclass(frozen=True, slots=True)
class Glances:
    """Verdicts of the pages about the whole mesh."""

    reading: MeshReading
    clock: Callable[[], datetime]

    async def proxies(self) -> Verdict:
        """Return the number of proxies in step."""
        return proxies.of_all(await listed(self.reading, self.clock()))

    async def streams(self) -> Verdict:
        """Return the verdict on the open streams: whether all resource types are in sync."""
        return pushes.of_streams(streams(self.reading))

    async def traffic(self) -> Verdict:
        """Return the verdict on the traffic between services: the success rates."""
        return traffic.of_traffic(await stat(self.reading, RowKind.EDGES, {}, self.clock()))

    async def policies(self) -> Verdict:
        """Return the verdict on the policy objects: the numbers of problems and objects."""
        # Only the number of objects is needed; converting their values would take long.
        result = debug.wrong(self.reading, await self.reading.problems())
        return policies.of_policies(result | {"objects": [None] * len(self.reading.objects())})

    async def certificates(self) -> Verdict:
        """Return the verdict on certificates: whether one in use has expired."""
        return of_certificates(await certificates(self.reading, self.clock()))

    async def loop(self) -> Verdict:
        """Return whether the event loop was blocked."""
        return mesh.of_loop(debug.loop(self.reading))

    async def sources(self) -> Verdict:
        """Return the verdict on the sources: failures, and stale or refused objects."""
        return mesh.of_sources(sources(self.reading, self.clock()))
