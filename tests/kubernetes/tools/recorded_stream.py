"""`meshwright serve` on the cluster, and one sidecar's stream with all its responses."""

import asyncio
import contextlib
import json
import shutil
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from prometheus_client.parser import text_string_to_metric_families

from meshwright.mesh.identity import ProxyName
from tests.feature.serve.delta_sidecar import Sidecar
from tests.tools.deadline import wait_until
from tests.tools.program import Program, Server

SECONDS = 60.0


@dataclass
class Following:
    """A server, and a sidecar that keeps its responses."""

    server: Server
    sidecar: Sidecar

    def addresses(self) -> set[str]:
        """Return the addresses of all endpoints that the sidecar has."""
        return {address for endpoint in self.sidecar.endpoints.values() for address in endpoint}

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until a condition holds, which may take long after an outage of the API server."""

        def is_so() -> object:
            assert self.server.process.poll() is None, "the server has ended"
            return holds()

        await asyncio.to_thread(wait_until, is_so, 2 * SECONDS, lambda: self.server.log()[-10:])

    async def until_at(self, *addresses: str) -> None:
        """Wait until the sidecar has endpoints at exactly these addresses, and all requested resources."""
        await self.until(lambda: self.addresses() == set(addresses) and self.sidecar.has_all())

    def metric(self, name: str) -> dict[tuple[str, ...], float]:
        """Return a metric's samples by the values of their labels."""
        text = self.server.get("/metrics")[1]
        return {
            tuple(sample.labels.values()): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == name
        }

    def debug(self, page: str, **query: str) -> dict[str, Any]:
        """Return the content of a debug page."""
        url = f"http://{self.server.bound['debug']}/debug/{page}?{urlencode(query)}"
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            return dict(json.load(answer))

    def codes(self) -> Counter[str]:
        """Return the number of each problem."""
        return Counter(problem["code"] for problem in self.debug("policies")["problems"])

    def failing(self) -> set[str]:
        """Return the resources that cannot be read now."""
        return {labels[0] for labels, value in self.metric("meshwright_kubernetes_failing").items() if value}

    def relists(self) -> dict[tuple[str, ...], float]:
        """Return the number of relists of each kind."""
        return self.metric("meshwright_kubernetes_relists_total")

    def problems(self) -> list[dict[str, Any]]:
        """Return the source's problems in the log."""
        return [line for line in self.server.log() if line["event"] == "kubernetes problem"]


@asynccontextmanager
async def following(program: Program, who: ProxyName, *flags: str) -> AsyncIterator[Following]:
    """Serve, and connect one sidecar; both end with the block."""
    server = await asyncio.to_thread(program.serve, *flags)
    folder = program.files / str(who.uuid)
    if not folder.exists():
        await asyncio.to_thread(_issue, program, who, folder)
    sidecar = Sidecar(str(who))
    stream = asyncio.create_task(sidecar.run(str(server.bound["ads"]), folder), name="sidecar")
    try:
        yield Following(server, sidecar)
        assert not stream.done(), "the stream has ended"
    finally:
        stream.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await stream
        await asyncio.to_thread(server.stop)


def _issue(program: Program, who: ProxyName, folder: Path) -> None:
    status, _, complaint = program.run(
        *("certs", "issue-proxy", "--state", str(program.state), "--uuid", str(who.uuid)),
        *("--service", str(who.service), "--namespace", str(who.namespace), "--out", str(folder), "--anyway"),
    )
    assert status == 0, complaint
    for end in ("pem", "key"):
        shutil.copy(folder / f"proxy.{end}", folder / f"{who}.{end}")
