"""Tests of the live update of open pages, which keeps input, focus and opened rows."""

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
    """Wait until an expression is true in the page."""
    async with asyncio.timeout(60):
        while not await browser.run(f"Boolean({script})"):
            await asyncio.sleep(0.05)


async def follow(browser: Browser, mesh: Server, path: str) -> None:
    """Open a page without a pause, and wait until it follows changes."""
    await browser.open(_address(mesh, path))
    await browser.run("sessionStorage.clear()")
    await browser.open(_address(mesh, path))
    await holds(browser, "document.getElementById('live').textContent.startsWith('Live.')")


@pytest_asyncio.fixture(loop_scope="module")
async def at_policies(browser: Browser, mesh: Server) -> AsyncIterator[Browser]:
    """The browser at the page of objects, which follows changes."""
    await browser.look(1300, dark=False)
    await follow(browser, mesh, "/debug/policies")
    await browser.run("window.stays = 1")
    yield browser
    mesh.write(*DOCUMENTS, AFTER)


async def could_have_looked(browser: Browser, change: Callable[[], object]) -> None:
    """Make a change, and wait until after its event plus the time in which the page would update."""
    await browser.run(
        "(() => { window.told = 0; const source = new EventSource('/api/v1/events'); source.onopen = () => { "
        "window.listens = 1; }; source.addEventListener('changed', () => { window.told = performance.now(); "
        "source.close(); }); })()"
    )
    await holds(browser, "window.listens")
    change()
    await holds(browser, "window.told && performance.now() > window.told + 5000")


def shown(named: str) -> str:
    """Return an expression that is true in a page with this word."""
    return f"document.querySelector('main').textContent.includes({json.dumps(named)})"


async def test_page_shows_a_change_without_a_reload(at_policies: Browser, mesh: Server) -> None:
    """The open row and the focus stay as they are."""
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


async def test_page_does_not_update_while_the_user_types(at_policies: Browser, mesh: Server) -> None:
    """The update follows when the field loses the focus, and the typed text stays."""
    await at_policies.run("document.querySelector('main input').focus()")
    await at_policies.run("document.querySelector('main input').value = 'TrafficTarget shop/a'")
    await could_have_looked(at_policies, lambda: mesh.write(*DOCUMENTS, AFTER, texts.service("typed")))
    assert not await at_policies.run(shown("shop/typed"))
    await at_policies.run("document.activeElement.blur()")
    await holds(at_policies, shown("shop/typed"))
    assert await at_policies.run("document.querySelector('main input').value") == "TrafficTarget shop/a"


async def test_acknowledgement_updates_the_page_of_pushes(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The answer replaces "pending" at once, although nothing else has changed."""
    async with serving(tmp_path_factory.mktemp("quiet")) as start:
        server: Server = await start(*DOCUMENTS[:6])
        async with server.client(server.certificate(TWO)) as client:
            await client.ask(TWO)
            sent = await client.call.read()
            await browser.open(_address(server, f"/debug/xds?proxy={TWO}"))
            await holds(browser, "document.getElementById('live').textContent.startsWith('Live.')")
            await browser.run("window.stays = document.getElementById('as-of').textContent")
            # The page has updated once.
            await holds(browser, "document.getElementById('as-of').textContent !== window.stays")
            assert await browser.run(shown("pending"))
            answer = {"type_url": sent.type_url, "response_nonce": sent.nonce}
            await client.call.write(discovery_pb2.DeltaDiscoveryRequest(**answer))
            await holds(browser, f"!{shown('pending')}")
            assert await browser.run("Boolean(window.stays)")  # no reload


async def test_live_update_can_be_paused_and_continued(at_policies: Browser, mesh: Server) -> None:
    """A page that is opened meanwhile is paused too. After "Resume" the page follows again."""
    await at_policies.run("document.querySelector('#live button').click()")
    await could_have_looked(at_policies, lambda: mesh.write(*DOCUMENTS, AFTER, texts.service("paused")))
    assert await at_policies.run("document.getElementById('live').textContent") == "Paused. Resume"
    assert not await at_policies.run(shown("shop/paused"))
    await at_policies.open(_address(mesh, "/debug/policies"))
    assert await at_policies.run("document.getElementById('live').textContent") == "Paused. Resume"
    await at_policies.run("document.querySelector('#live button').click()")
    await holds(at_policies, "document.getElementById('live').textContent === 'Live. Pause'")


LAST = "[...document.querySelectorAll('main details > summary')].at(-1)"
ROW = "closest('tr').cells[1].textContent"


async def test_changed_figures_keep_the_open_row_and_the_focus(browser: Browser, mesh: Server) -> None:
    """A row is identified by its link, so it stays the same row when its counts change."""
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


async def test_page_of_a_deleted_object_reports_the_deletion_and_return(
    at_policies: Browser, mesh: Server
) -> None:
    """The page of one object follows its deletion and its return."""
    mesh.write(*DOCUMENTS, AFTER, texts.service("going"))
    await holds(at_policies, shown("shop/going"))
    await follow(at_policies, mesh, "/debug/policies?object=Service%20shop/going")
    await holds(at_policies, shown("in force"))
    mesh.write(*DOCUMENTS, AFTER)
    await holds(at_policies, shown("does not exist in any source"))
    mesh.write(*DOCUMENTS, AFTER, texts.service("going"))
    await holds(at_policies, f"!{shown('does not exist in any source')}")


async def test_only_pages_with_an_editable_form_do_not_follow(browser: Browser, mesh: Server) -> None:
    """The page of an answer has a form that leads elsewhere and follows changes.

    The page of `try` does not.
    """
    await follow(browser, mesh, "/debug/explain?from=shop/buyer&to=shop/bank:80")
    assert await browser.run("document.querySelectorAll('main form[method=post]').length") > 0
    await browser.open(_address(mesh, "/debug/try"))
    assert await browser.run("document.getElementById('live').textContent") == ""


async def test_page_above_the_limit_of_event_clients_reports_not_live(browser: Browser, mesh: Server) -> None:
    """All places for event clients are taken, so the page says that it is not live."""
    async with contextlib.AsyncExitStack() as ends:
        session = await ends.enter_async_context(aiohttp.ClientSession())
        await browser.open("about:blank")
        async with asyncio.timeout(60):
            listening = 0
            while listening < CLIENTS:
                answer = await ends.enter_async_context(session.get(_address(mesh, "/api/v1/events")))
                if answer.status == 200:
                    listening += 1
                else:  # the browser's earlier stream still ends, and its place must not go to the page
                    await asyncio.sleep(0.05)
        await browser.open(_address(mesh, "/debug/policies"))
        await holds(browser, "document.getElementById('live').textContent.startsWith('Not live')")
