"""The verdicts of the pages, for the index: from as little as each takes."""

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
    """How each of the pages is that say something of the mesh as a whole."""

    reading: MeshReading
    clock: Callable[[], datetime]

    async def proxies(self) -> Verdict:
        """Return how many proxies are in step."""
        return proxies.of_all(await listed(self.reading, self.clock()))

    async def streams(self) -> Verdict:
        """Return where the streams stand."""
        return pushes.of_streams(streams(self.reading))

    async def traffic(self) -> Verdict:
        """Return how edges fare."""
        return traffic.of_traffic(await stat(self.reading, RowKind.EDGES, {}, self.clock()))

    async def policies(self) -> Verdict:
        """Return what is wrong with the input."""
        # How many objects there are is enough: of each its value would be made.
        found = debug.wrong(self.reading, await self.reading.problems())
        return policies.of_policies(found | {"objects": [None] * len(self.reading.objects())})

    async def certificates(self) -> Verdict:
        """Return whether certificates in use have expired."""
        return of_certificates(await certificates(self.reading, self.clock()))

    async def loop(self) -> Verdict:
        """Return whether the event loop was held."""
        return mesh.of_loop(debug.loop(self.reading))

    async def sources(self) -> Verdict:
        """Return whether the sources are well."""
        return mesh.of_sources(sources(self.reading, self.clock()))
