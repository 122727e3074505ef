"""Commands that ask a running server for what it knows: all of them, and of its JSON API alone.

Between them and a real server stands a socket that writes down what is asked, and passes it on, or answers
as a server does that has no such API.
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
class Between:
    """A state directory at whose socket everything is written down; `old`: it knows nothing of an API."""

    state: Path
    typed: Typed
    old: bool = False
    asked: list[str] = field(default_factory=list)

    async def run(self, *arguments: str) -> Done:
        """Run a command, beside the directory."""
        variables = {"MESHWRIGHT_STATE": str(self.state)}
        return await asyncio.to_thread(self.typed.run, Command(self.state.parent, arguments, variables))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def between(
    mesh: Server, typed: Typed, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Between]:
    """Stand between commands and the server; beside it is a directory of manifests with a change."""
    folder = tmp_path_factory.mktemp("between")
    (folder / "other").mkdir()
    (folder / "other" / "mesh.yaml").write_text("\n---\n".join((*DOCUMENTS[:8], AFTER)))
    found = Between(folder / "state", typed)
    found.state.mkdir(mode=0o700)
    async with _standing(found, mesh.state / SOCKET_NAME):
        yield found


@asynccontextmanager
async def _standing(between: Between, behind: Path) -> AsyncIterator[None]:
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
def asked(between: Between) -> list[str]:
    """Return what is asked from now on."""
    between.asked.clear()
    return between.asked


@pytest.mark.parametrize("name", READING)
async def test_what_is_known_is_asked_of_the_api_alone(between: Between, asked: list[str], name: str) -> None:
    """For people and for programs, who lose no field that they had."""
    for_people = await between.run(*READING[name])
    (between.state.parent / "report.tar.gz").unlink(missing_ok=True)
    for_programs = await between.run(*READING[name], "--json")
    for done in (for_people, for_programs):
        assert done.returncode in (Status.YES, Status.NO), done.stderr
        assert done.stdout
    assert asked
    assert [each for each in asked if not each.startswith(f"GET {API}/")] == []
    assert set(PRINTED.get(name, ())) - set(_fields(json.loads(for_programs.stdout))) == set()


async def test_what_changes_something_is_asked_elsewhere(between: Between, asked: list[str]) -> None:
    """And so is what only the directory's owner is told. What is asked is written down, whatever it is."""
    assert (await between.run("proxy", "retry", ONE)).returncode == Status.YES
    assert (await between.run("certs", "token", "list")).returncode == Status.YES
    assert (await between.run("log-level")).returncode == Status.YES
    assert asked == ["POST /proxies/retry", "GET /certs/tokens", "GET /logging"]


@pytest.mark.parametrize("name", [each for each in READING if each not in NEVER_FAIL])
async def test_of_an_older_server_it_is_said_that_it_is_one(
    between: Between, asked: list[str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was found out: one sentence, and no page is asked in the place of the API."""
    monkeypatch.setattr(between, "old", True)
    done = await between.run(*READING[name])
    assert (done.returncode, done.stdout) == (Status.UNKNOWN, "")
    assert done.stderr.startswith(f"meshwright: the server of {between.state} has no {API}/")
    assert done.stderr.endswith(
        ", because the server is older than this command: use the `meshwright` of the server's version; "
        "`meshwright version` prints the version of this one\n"
    )
    assert [each for each in asked if not each.startswith(f"GET {API}/")] == []


async def test_of_a_server_that_lacks_one_path_it_is_said_which(between: Between, asked: list[str]) -> None:
    """As a server with an API says it; that of what it has one is not there is another thing."""
    with pytest.raises(UnexpectedResponse, match=rf"^the server of .* has no {API}/what/now, because "):
        await asyncio.to_thread(api, between.state, "/what%2Fnow")
    asked.clear()
    answer = await between.run("proxy", "show", "nobody/at-all")
    assert (answer.returncode, answer.stdout) == (Status.UNKNOWN, "")
    assert answer.stderr.startswith("meshwright: proxy 'nobody/at-all' does not exist")
    assert asked == [f"GET {API}/proxies/nobody%2Fat-all"]


def _fields(value: object, at: str = "") -> Iterator[str]:
    """Yield the path of every field whose name says what it is."""
    match value:
        case dict():
            for name, each in value.items():
                yield f"{at}.{name}"
                if name not in _OF_MANY_NAMES:
                    yield from _fields(each, f"{at}.{name}")
        case list():
            for each in value:
                yield from _fields(each, f"{at}[]")
        case _:
            pass


_OF_MANY_NAMES: Any = ("sync", "pending_seconds", "types", "missing", "manifest", "value", "errors")
