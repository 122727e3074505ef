"""Tests of the requests that commands send to a running server.

A socket between the commands and a real server records each request and passes it on, or answers like an
older server without the JSON API.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from yarl import URL

from meshwright.admin.http.servers import SOCKET_NAME, serving, unix_socket
from meshwright.cli.errors import Status, UnexpectedResponse
from meshwright.cli.socket.client import api
from tests.feature.identity.conftest import Server
from tests.feature.pages.conftest import AFTER, DOCUMENTS, ONE, TWO, mesh
from tests.tools.forked_cli import Command, Done, Typed

__all__ = ["mesh"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

API = "/api/v1"
CALL = (
    "--from",
    "shop/buyer",
    "--to",
    "shop/shop:80",
    "--header",
    "a: b",
    "--header",
    "c: d",
    "GET",
    "/sell",
)
LINE = json.dumps(
    {
        "start_time": "2026-11-22T10:21:51.693Z",
        "caller": "spiffe://cluster.local/ns/shop/sa/buyer",
        "local_address": "10.0.0.4:18080",
        "method": "GET",
        "path": "/books?x=1",
        "authority": "bank.shop",
        "response_code": 403,
    }
)
READING = {
    "proxies": ("proxies",),
    "proxy show": ("proxy", "show", TWO),
    "proxy show, one that rejects": ("proxy", "show", "shop/one"),
    "proxy show, one section": ("proxy", "show", "two", "routes"),
    "sources": ("sources",),
    "hosts": ("hosts", "--namespace", "shop"),
    "explain": ("explain", *CALL),
    "explain, out of the mesh": ("explain", "--from", "shop/buyer", "--to", "1.2.3.4:80"),
    "explain, a gateway": ("explain", "--gateway", "shop/edge:80", "--host", "shop.example"),
    "explain, a line": ("explain", LINE),
    "connectivity": ("connectivity", "--no-request", *CALL),
    "certs list": ("certs", "list"),
    "certs show": ("certs", "show", TWO),
    "diff": ("diff", "other"),
    "stat": ("stat", "services"),
    "top": ("top", "--window", "300s"),
    "check": ("check",),
    "bug-report": ("bug-report", "--out", "report.tar.gz", "--values"),
}
PRINTED: dict[str, list[str]] = json.loads(Path(__file__).with_name("printed.json").read_text())
"""The fields that these have printed with --json for as long as they do: more may come."""
NEVER_FAIL = ("check", "bug-report")
"""They say what they could not see."""


@dataclass
class RecordingSocket:
    """A state directory with a recording socket.

    If `old` is true, it answers like a server without the API.
    """

    state: Path
    typed: Typed
    old: bool = False
    asked: list[str] = field(default_factory=list)

    async def run(self, *arguments: str) -> Done:
        """Run a command in the parent of the state directory."""
        variables = {"MESHWRIGHT_STATE": str(self.state)}
        return await asyncio.to_thread(self.typed.run, Command(self.state.parent, arguments, variables))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def between(
    mesh: Server, typed: Typed, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RecordingSocket]:
    """Put a recording socket between commands and the server, next to a directory of changed manifests."""
    folder = tmp_path_factory.mktemp("between")
    (folder / "other").mkdir()
    (folder / "other" / "mesh.yaml").write_text("\n---\n".join((*DOCUMENTS[:8], AFTER)))
    result = RecordingSocket(folder / "state", typed)
    result.state.mkdir(mode=0o700)
    async with _standing(result, mesh.state / SOCKET_NAME):
        yield result


@asynccontextmanager
async def _standing(between: RecordingSocket, behind: Path) -> AsyncIterator[None]:
    async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(behind))) as session:

        async def passed_on(request: web.Request) -> web.Response:
            between.asked.append(f"{request.method} {request.raw_path}")
            if between.old and request.path.startswith(API):
                return web.Response(status=404, text="404: Not Found")
            url = URL(f"http://localhost{request.raw_path}", encoded=True)
            body, headers = await request.read(), {"Content-Type": request.content_type}
            async with session.request(request.method, url, data=body, headers=headers) as answer:
                return web.Response(status=answer.status, body=await answer.read())

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", passed_on)
        async with serving(app, unix_socket(between.state / SOCKET_NAME)):
            yield


@pytest.fixture
def asked(between: RecordingSocket) -> list[str]:
    """The list of requests, emptied at the start of the test."""
    between.asked.clear()
    return between.asked


@pytest.mark.parametrize("name", READING)
async def test_reading_command_uses_only_the_json_api(
    between: RecordingSocket, asked: list[str], name: str
) -> None:
    """A reading command sends only API requests, and its `--json` output keeps every earlier field."""
    for_people = await between.run(*READING[name])
    (between.state.parent / "report.tar.gz").unlink(missing_ok=True)
    for_programs = await between.run(*READING[name], "--json")
    for done in (for_people, for_programs):
        assert done.returncode in (Status.YES, Status.NO), done.stderr
        assert done.stdout
    assert asked
    assert [item for item in asked if not item.startswith(f"GET {API}/")] == []
    assert set(PRINTED.get(name, ())) - set(_fields(json.loads(for_programs.stdout))) == set()


async def test_changing_commands_use_paths_outside_the_json_api(
    between: RecordingSocket, asked: list[str]
) -> None:
    """Changes and owner-only reads go to their own paths, and the recorder sees those too."""
    assert (await between.run("proxy", "retry", ONE)).returncode == Status.YES
    assert (await between.run("certs", "token", "list")).returncode == Status.YES
    assert (await between.run("log-level")).returncode == Status.YES
    assert asked == ["POST /proxies/retry", "GET /certs/tokens", "GET /logging"]


@pytest.mark.parametrize("name", [item for item in READING if item not in NEVER_FAIL])
async def test_command_reports_an_older_server_without_the_api(
    between: RecordingSocket, asked: list[str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the missing API and the remedy, and no other path is requested."""
    monkeypatch.setattr(between, "old", True)
    done = await between.run(*READING[name])
    assert (done.returncode, done.stdout) == (Status.UNKNOWN, "")
    assert done.stderr.startswith(f"meshwright: the server of {between.state} has no {API}/")
    assert done.stderr.endswith(
        ", because the server is older than this command: use the `meshwright` of the server's version; "
        "`meshwright version` prints the version of this one\n"
    )
    assert [item for item in asked if not item.startswith(f"GET {API}/")] == []


async def test_unknown_api_path_differs_from_an_unknown_object(
    between: RecordingSocket, asked: list[str]
) -> None:
    """A missing path means an older server, but a missing proxy is reported as a missing proxy."""
    with pytest.raises(UnexpectedResponse, match=rf"^the server of .* has no {API}/what/now, because "):
        await asyncio.to_thread(api, between.state, "/what%2Fnow")
    asked.clear()
    answer = await between.run("proxy", "show", "nobody/at-all")
    assert (answer.returncode, answer.stdout) == (Status.UNKNOWN, "")
    assert answer.stderr.startswith("meshwright: proxy 'nobody/at-all' does not exist")
    assert asked == [f"GET {API}/proxies/nobody%2Fat-all"]


def _fields(value: object, at: str = "") -> Iterator[str]:
    """Yield the path of every field, except below objects whose keys are data."""
    match value:
        case dict():
            for name, item in value.items():
                yield f"{at}.{name}"
                if name not in _OF_MANY_NAMES:
                    yield from _fields(item, f"{at}.{name}")
        case list():
            for item in value:
                yield from _fields(item, f"{at}[]")
        case _:
            pass


_OF_MANY_NAMES: Any = ("sync", "pending_seconds", "types", "missing", "manifest", "value", "errors")
