"""Test of `meshwright tap` with a real server, agents, Envoys and calls."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from demo.plane import COMMAND
from meshwright.mesh.workload import Capture, Transparent
from tests.e2e.agent.conftest import missing_for_namespaces
from tests.e2e.agent.mesh_of_machines import CALLED_AT, V4, Meshed
from tests.e2e.agent.scenes import get_from
from tests.e2e.policy.applications import HTTP
from tests.tools.deadline import until

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(missing_for_namespaces()), reason=missing_for_namespaces() or "it can run"),
]
CHANGED = r"^listener_manager.listener_(added|modified|removed|in_place_updated)$"
WRITTEN = r"^access_logs.grpc_access_log.*logs_written$"
CALLER = "default/alice"


class Watching:
    """A running `meshwright tap` and its output."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def line(self) -> str:
        """Return the next line of standard output, or an empty string at its end."""
        assert self.process.stdout is not None
        async with asyncio.timeout(30):
            return (await self.process.stdout.readline()).decode()

    async def remark(self) -> str:
        """Return the next line of standard error."""
        assert self.process.stderr is not None
        async with asyncio.timeout(30):
            return (await self.process.stderr.readline()).decode().strip()

    async def request(self) -> dict[str, Any]:
        """Return the next request."""
        result: dict[str, Any] = json.loads(await self.line())
        return result


@asynccontextmanager
async def watching(meshed: Meshed, *options: str) -> AsyncIterator[Watching]:
    """Run `meshwright tap` until the context ends; the shop's sidecar already reports when it begins."""
    command = [*meshed.machines["switch"].enter, str(COMMAND), "tap", *options]
    command += ["--state", str(meshed.state / "control")]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
    try:
        result = Watching(process)
        assert await result.remark() == "watching requests to default/shop at 1 sidecar"
        await until(partial(has_rules, meshed))
        yield result
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
    await until(partial(has_none, meshed))


async def has_rules(meshed: Meshed) -> bool:
    """Return whether the shop's Envoy has shadow rules in its routes, which are never enforced."""
    shop = meshed.agents["shop"]
    _, text = await shop.get(f"{shop.admin}/config_dump?resource=dynamic_route_configs")
    return "shadow_rules_stat_prefix" in text


async def has_none(meshed: Meshed) -> bool:
    """Return whether the shop's Envoy has no shadow rules."""
    return not await has_rules(meshed)


def versions(result: dict[str, Any]) -> set[tuple[str, str, str]]:
    """Return the acknowledged version of each type at each proxy."""
    return {
        (stream["node"], name, kind["acknowledged_version"])
        for stream in result["streams"]
        for name, kind in stream["types"].items()
    }


async def ask(meshed: Meshed, path: str, method: str = "GET") -> int:
    """Send a request of alice's application to the shop; return the status."""
    return (await get_from(meshed.place("alice"), f"http://{CALLED_AT[V4]}{path}", method))[0]


async def test_tap_reports_chosen_requests_and_restores_the_proxy_afterwards(
    envoy: str, tmp_path: Path, ends: AsyncExitStack
) -> None:
    """Answered and denied requests are reported without query strings.

    No listener changes, the sidecar applies the filters, and after the command, or after a crash of the
    control plane, all is as before.
    """
    tmp_path.chmod(0o755)
    meshed = await Meshed.start(tmp_path, V4, Transparent(Capture.REDIRECT, ipv6=True), envoy, ends)
    changed = await meshed.stat("shop", CHANGED)
    before = await meshed.ask("/debug/xds")

    async with watching(meshed, "default/shop", "--json") as tap:
        assert await ask(meshed, "/books/one?token=secret#top") == 200
        assert await ask(meshed, "/cellar") == 403
        messages = [await tap.request(), await tap.request()]
    assert [(item["caller"], item["method"], item["path"], item["status"]) for item in messages] == [
        (CALLER, "GET", "/books/one", 200),
        (CALLER, "GET", "/cellar", 403),
    ]
    assert [(item["policy"], item["port"]) for item in messages] == [("default/books", HTTP), ("", HTTP)]
    assert messages[1]["details"] == "rbac_access_denied_matched_policy[none]"
    assert {item["proxy"] for item in messages} == {"shop-uuid.shop.default"}
    assert "secret" not in json.dumps(messages)
    assert tap.process.returncode == -signal.SIGTERM

    written = await meshed.stat("shop", WRITTEN)
    assert written == 2
    assert await ask(meshed, "/books/unwatched") == 200
    assert await meshed.stat("shop", WRITTEN) == written
    assert await meshed.stat("shop", CHANGED) == changed
    assert versions(await meshed.ask("/debug/xds")) == versions(before)

    # The sidecar applies the filters: it reports one of two requests.
    chosen = ("--path", "/books", "--method", "post", "--from", CALLER, "--limit", "1")
    async with watching(meshed, "default/shop", *chosen) as tap:
        assert await ask(meshed, "/books/two") == 200
        assert await ask(meshed, "/books/three", "POST") == 200
        line = await tap.line()
        assert await tap.process.wait() == 0
        assert await tap.remark() == "ended: the limit of 1 requests is reached"
    assert f"{CALLER}  →  default/shop (shop-uui):{HTTP}  POST " in line
    assert "/books/three  200" in line
    assert "by default/books" in line
    assert await meshed.stat("shop", WRITTEN) == written + 1

    # A killed control plane leaves no tap behind: the next one has none.
    async with watching(meshed, "default/shop") as tap:
        await meshed.crash()
        assert await tap.process.wait() == 2
        await meshed.serve()
