"""Pages that are open follow what changes, and leave what somebody is at as it is."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable

import aiohttp
import pytest
import pytest_asyncio

from meshwright.admin.api.events import CLIENTS
from protos.envoy.service.discovery.v3 import discovery_pb2
from tests.feature.identity.conftest import Server, serving
from tests.feature.pages.conftest import AFTER, DOCUMENTS, TWO, browser, chromium, mesh, report
from tests.meshes import texts
from tests.tools.browser import Browser

__all__ = ["browser", "chromium", "mesh"]

pytestmark = pytest.mark.asyncio(loop_scope="module")


def _address(server: Server, path: str) -> str:
    return f"http://{server.bound.debug}{path}"


async def holds(browser: Browser, script: str) -> None:
    """Wait until something is so in the page."""
    async with asyncio.timeout(60):
        while not await browser.run(f"Boolean({script})"):
            await asyncio.sleep(0.05)


async def follow(browser: Browser, mesh: Server, path: str) -> None:
    """Open a page, paused or not before, and wait until it follows what changes."""
    await browser.open(_address(mesh, path))
    await browser.run("sessionStorage.clear()")
    await browser.open(_address(mesh, path))
    await holds(browser, "document.getElementById('live').textContent.startsWith('Live.')")


@pytest_asyncio.fixture(loop_scope="module")
async def at_policies(browser: Browser, mesh: Server) -> AsyncIterator[Browser]:
    """Be at the page of objects, which follows what changes."""
    await browser.look(1300, dark=False)
    await follow(browser, mesh, "/debug/policies")
    await browser.run("window.stays = 1")
    yield browser
    mesh.write(*DOCUMENTS, AFTER)


async def could_have_looked(browser: Browser, change: Callable[[], object]) -> None:
    """Change something, and wait until the page is told, and for so long that it would have looked."""
    await browser.run(
        "(() => { window.told = 0; const source = new EventSource('/api/v1/events');"
        " source.onopen = () => { window.listens = 1; };"
        " source.addEventListener('changed',"
        " () => { window.told = performance.now(); source.close(); }); })()"
    )
    await holds(browser, "window.listens")
    change()
    await holds(browser, "window.told && performance.now() > window.told + 5000")


def shown(named: str) -> str:
    """Return what is true in a page that has a word."""
    return f"document.querySelector('main').textContent.includes({json.dumps(named)})"


async def test_a_page_shows_what_has_changed(at_policies: Browser, mesh: Server) -> None:
    """By itself, without being opened anew; what is open, scrolled to and focused stays so."""
    await at_policies.run("document.querySelectorAll('main details')[1].open = true")
    await at_policies.run("document.querySelectorAll('main a')[3].focus()")
    focused = await at_policies.run("document.activeElement.textContent")
    opened = await at_policies.run("document.querySelectorAll('main details')[1].closest('tr').textContent")
    assert not await at_policies.run(shown("Service shop/later"))
    mesh.write(*DOCUMENTS, AFTER, texts.service("later"))
    await holds(at_policies, shown("shop/later"))
    assert await at_policies.run("window.stays") == 1
    assert await at_policies.run("document.activeElement.textContent") == focused
    still = await at_policies.run(
        "[...document.querySelectorAll('main details[open]')].map(each => each.closest('tr').textContent)"
    )
    assert still == [opened]


async def test_nothing_moves_while_somebody_is_typing(at_policies: Browser, mesh: Server) -> None:
    """It is caught up with when the field is left; what was typed stays."""
    await at_policies.run("document.querySelector('main input').focus()")
    await at_policies.run("document.querySelector('main input').value = 'TrafficTarget shop/a'")
    await could_have_looked(at_policies, lambda: mesh.write(*DOCUMENTS, AFTER, texts.service("typed")))
    assert not await at_policies.run(shown("shop/typed"))
    await at_policies.run("document.activeElement.blur()")
    await holds(at_policies, shown("shop/typed"))
    assert await at_policies.run("document.querySelector('main input').value") == "TrafficTarget shop/a"


async def test_an_answer_shows_where_answers_are_shown(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """How long it took is there as soon as it came, although nothing else has changed."""
    async with serving(tmp_path_factory.mktemp("quiet")) as start:
        server: Server = await start(*DOCUMENTS[:6])
        async with server.client(server.certificate(TWO)) as client:
            await client.ask(TWO)
            sent = await client.call.read()
            await browser.open(_address(server, f"/debug/xds?proxy={TWO}"))
            await holds(browser, "document.getElementById('live').textContent.startsWith('Live.')")
            await browser.run("window.stays = document.getElementById('as-of').textContent")
            # It has had its first look.
            await holds(browser, "document.getElementById('as-of').textContent !== window.stays")
            assert await browser.run(shown("pending"))
            said = {"type_url": sent.type_url, "response_nonce": sent.nonce}
            await client.call.write(discovery_pb2.DeltaDiscoveryRequest(**said))
            await holds(browser, f"!{shown('pending')}")
            assert await browser.run("Boolean(window.stays)")  # not opened anew


async def test_it_can_be_paused(at_policies: Browser, mesh: Server) -> None:
    """And goes on from where the mesh is by then; a page that is opened meanwhile is paused, too."""
    await at_policies.run("document.querySelector('#live button').click()")
    await could_have_looked(at_policies, lambda: mesh.write(*DOCUMENTS, AFTER, texts.service("paused")))
    assert await at_policies.run("document.getElementById('live').textContent") == "Paused. Go on"
    assert not await at_policies.run(shown("shop/paused"))
    await at_policies.open(_address(mesh, "/debug/policies"))
    assert await at_policies.run("document.getElementById('live').textContent") == "Paused. Go on"
    await at_policies.run("document.querySelector('#live button').click()")
    await holds(at_policies, "document.getElementById('live').textContent === 'Live. Pause'")


LAST = "[...document.querySelectorAll('main details > summary')].at(-1)"
ROW = "closest('tr').cells[1].textContent"


async def test_figures_that_change_close_no_row_and_move_no_focus(browser: Browser, mesh: Server) -> None:
    """A row stays the same row when it counts more; which it is, is where it leads."""
    await report(mesh, "before")
    await follow(browser, mesh, "/debug/traffic?of=edges&window=3600")
    await browser.run(f"{LAST}.parentNode.open = true; {LAST}.focus()")
    row = await browser.run(f"{LAST}.{ROW}")
    await browser.run("window.stays = document.querySelector('main table').textContent")
    await report(mesh, "after")
    await holds(browser, "document.querySelector('main table').textContent !== window.stays")
    opened = "[...document.querySelectorAll('main details[open] > summary')]"
    assert await browser.run(f"{opened}.map(each => each.{ROW})") == [row]
    assert await browser.run(f"document.activeElement.{ROW}") == row


async def test_a_page_of_what_has_gone_says_so(at_policies: Browser, mesh: Server) -> None:
    """And of what is there again, that it is."""
    mesh.write(*DOCUMENTS, AFTER, texts.service("going"))
    await holds(at_policies, shown("shop/going"))
    await follow(at_policies, mesh, "/debug/policies?object=Service%20shop/going")
    await holds(at_policies, shown("in force"))
    mesh.write(*DOCUMENTS, AFTER)
    await holds(at_policies, shown("does not exist in any source"))
    mesh.write(*DOCUMENTS, AFTER, texts.service("going"))
    await holds(at_policies, f"!{shown('does not exist in any source')}")


async def test_an_answer_of_no_is_followed_until_it_is_yes(browser: Browser, mesh: Server) -> None:
    """It has a form that leads to another page: that is none that somebody fills in here."""
    await follow(browser, mesh, "/debug/explain?from=shop/buyer&to=shop/bank:80")
    assert await browser.run("document.querySelectorAll('main form[method=post]').length") > 0
    await browser.open(_address(mesh, "/debug/try"))
    assert await browser.run("document.getElementById('live').textContent") == ""


async def test_a_page_that_is_not_told_says_so(browser: Browser, mesh: Server) -> None:
    """As many as may listen do already."""
    async with contextlib.AsyncExitStack() as ends:
        session = await ends.enter_async_context(aiohttp.ClientSession())
        await browser.open("about:blank")
        async with asyncio.timeout(60):
            listening = 0
            while listening < CLIENTS:
                answer = await ends.enter_async_context(session.get(_address(mesh, "/api/v1/events")))
                if answer.status == 200:
                    listening += 1
                else:  # the browser's own of before ends in a moment, and its place would be the page's
                    await asyncio.sleep(0.05)
        await browser.open(_address(mesh, "/debug/policies"))
        await holds(browser, "document.getElementById('live').textContent.startsWith('Not live')")
