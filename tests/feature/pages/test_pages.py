"""Tests of all pages in a browser, wide and narrow, light and dark. The pictures are in the test's folder."""

import html
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import aiohttp
import pytest
from yarl import URL

from meshwright.admin.pages.trial_runner import BYTES
from tests.feature.identity.conftest import Server
from tests.feature.pages.conftest import EVIL, ONE, ROUTE, TWO, report
from tests.feature.pages.page_faults import FOCUSED, LOOKS, OPENED
from tests.meshes import texts
from tests.tools import libyaml
from tests.tools.browser import Browser

pytestmark = pytest.mark.asyncio(loop_scope="module")

REJECTED = "rds-outbound.shop/shop|80"
GONE = ("does not exist in any source", "does not know a version of", "is not stored any more")
"""A sentence may name what is lacking, and versions are kept for a while."""
PAGES = {
    "index": "/debug",
    "proxies": "/debug/proxy",
    "configuration": f"/debug/proxy?proxy={TWO}",
    "told": f"/debug/proxy/show?proxy={ONE}",
    "told-form": "/debug/proxy/show",
    "streams": "/debug/xds",
    "pushes": f"/debug/xds?proxy={ONE}&resource=route/{REJECTED}",
    "diff-form": "/debug/xds/diff",
    "diff": f"/debug/xds/diff?proxy={TWO}&type=route&name={ROUTE}",
    "published": "/debug/published",
    "policies": "/debug/policies",
    "object": "/debug/policies?object=TrafficSplit shop/poison",
    "traffic": "/debug/traffic",
    "traffic-of-services": "/debug/traffic?of=services&window=600",
    "traffic-of-one": "/debug/traffic?of=edges&service=shop/shop&window=600",
    "topology": "/debug/topology",
    "topology-of-one": "/debug/topology?service=shop/buyer&window=600",
    "topology-of-both": "/debug/topology?service=shop/buyer&by=namespace",
    "topology-by-namespace": "/debug/topology?by=namespace&window=3600",
    "try": "/debug/try",
    "access": "/debug/access",
    "access-of-one": "/debug/access?source=shop/buyer",
    "explain-form": "/debug/explain",
    "explained": "/debug/explain?from=shop/buyer&to=shop/shop:80&path=/sell&method=&header=&line=",
    "connectivity-form": "/debug/connectivity",
    "connectivity": "/debug/connectivity?from=shop/buyer&to=shop/shop:80&path=/sell&method=&header=",
    "certificates": "/debug/certs",
    "configured": "/debug/config",
    "loop": "/debug/loop",
    "sources": "/debug/sources",
    "documents": "/debug/documents",
    "no-such-page": "/debug/nothing",
    "elsewhere": "/nothing",
    "bad-parameter": "/debug/explain?from=x&to=<script>",
    "no-such-proxy": "/debug/proxy?proxy=<script>alert(1)</script>",
}
LEADS = "[...document.querySelectorAll('main a[href*=topology]')].map(each => each.getAttribute('href'))"


def _address(server: Server, path: str) -> str:
    return f"http://{server.bound.debug}{path}"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1300, 420])
async def test_every_page_is_readable_at_each_width_and_colour_scheme(
    browser: Browser, mesh: Server, tmp_path: Path, width: int, *, dark: bool
) -> None:
    """No page is too wide, breaks a word, lacks contrast, or lacks a title, label or verdict."""
    await browser.look(width, dark=dark)
    wrong: dict[str, Any] = {}
    for name, path in PAGES.items():
        await browser.open(_address(mesh, path))
        await browser.photograph(tmp_path / f"{name}.png")
        wrong[name] = await browser.run(LOOKS)
        await browser.run(OPENED)
        wrong[f"{name}, opened"] = await browser.run(LOOKS)
    assert {name: result for name, result in wrong.items() if result} == {}


async def test_page_shows_foreign_text_without_running_it(browser: Browser, mesh: Server) -> None:
    """Names and values in manifests and requests are escaped, and the page's policy blocks added scripts."""
    await browser.look(1300, dark=False)
    for name, path in PAGES.items():
        await browser.open(_address(mesh, path))
        assert "evil" not in await browser.run("document.title"), name
        assert await browser.run("document.scripts.length") == 1, name
    await browser.open(_address(mesh, "/debug/policies"))
    assert EVIL in await browser.run("document.body.textContent")
    # Injected markup does not run either.
    await browser.run(
        "(() => { const made = document.createElement('script'); made.textContent = 'window.evil = 1';"
        " document.body.append(made); document.body.insertAdjacentHTML('beforeend',"
        " '<img src=x onerror=\"window.evil = 1\">'); })()"
    )
    assert await browser.run("document.scripts.length") == 2
    assert await browser.run("window.evil === undefined")


async def test_form_keeps_every_parameter_of_its_page(browser: Browser, mesh: Server) -> None:
    """A parameter without a field would be lost when the user changes another field and submits."""
    fields = (
        "[...document.querySelectorAll('main form:not([method=post]) [name]')].map(e => [e.name, e.value])"
    )
    lost = {}
    for name, path in PAGES.items():
        await browser.open(_address(mesh, path))
        if shown := {tuple(item) for item in await browser.run(fields)}:
            lost[name] = {item for item in URL(path).query.items() if item[1]} - shown
    assert {name: result for name, result in lost.items() if result} == {}


async def test_topology_picture_has_every_node_and_edge_of_the_api(browser: Browser, mesh: Server) -> None:
    """A node is reached by the keyboard, and leads to its neighbours with the same window."""
    result = await mesh.ask("GET", "/api/v1/topology?window=600")
    await browser.look(1300, dark=False)
    await browser.open(_address(mesh, "/debug/topology?window=600"))
    titles = "[...document.querySelectorAll('.picture {} > title')].map(each => each.textContent)"
    nodes, edges = [await browser.run(titles.format(item)) for item in ("a.node", "path.edge")]
    assert sorted(node.split(":")[0] for node in nodes) == sorted(
        node["id"].split(":")[0] for node in result["nodes"]
    )
    assert len(edges) == len([edge for edge in result["edges"] if edge["source"] != edge["destination"]])
    assert [edge for edge in edges if edge.startswith("shop/buyer to shop/shop: ✕ 85.0% ")], edges
    inside = "document.activeElement.closest('.picture a.node')"
    for _ in range(60):
        await browser.press("Tab")
        if await browser.run(f"!!{inside}"):
            break
    wanted = await browser.run(f"{inside}.getAttribute('href')")
    assert wanted.startswith("/debug/topology?service=")
    # The links keep the window of ten minutes, because the last minute may have no calls.
    assert all(item.endswith("&window=600") for item in await browser.run(LEADS)), wanted
    await browser.press("Enter")
    await browser.loaded()
    assert (await browser.run("location.pathname + location.search")) == wanted
    assert await browser.run("document.querySelectorAll('.picture a.subject').length") == 1
    assert await browser.run("document.querySelector('[name=window]').value") == "600"


async def test_form_tries_manifests_and_applies_nothing(browser: Browser, mesh: Server) -> None:
    """The answer shows problems and differences.

    The typed text stays, and the published state is unchanged.
    """
    before = await mesh.ask("GET", "/debug/published")
    await browser.look(420, dark=True)
    await browser.open(_address(mesh, "/debug/try"))
    typed = texts.route_group("routes", texts.match("buy", "/</textarea><b id=evil>")) + "---\nkind: 7\n"
    await browser.run(f"document.querySelector('textarea').value = {json.dumps(typed)}")
    await browser.submit("form.wide")
    assert await browser.run("document.querySelector('textarea').value") == typed
    assert await browser.run("document.querySelector('#evil')") is None
    verdict = await browser.run("document.querySelector('.verdict').textContent")
    assert "1 object read; 3 problems; 3 proxies would get another configuration. No manifest was" in verdict
    assert await browser.run("document.querySelectorAll('.added, .removed').length") > 0
    assert not await browser.run(LOOKS)
    await browser.run(OPENED)
    assert not await browser.run(LOOKS)
    assert await mesh.ask("GET", "/debug/published") == before


@pytest.mark.parametrize(
    "said", [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}]
)
async def test_manifests_from_a_page_of_another_site_are_refused(mesh: Server, said: dict[str, str]) -> None:
    """A browser sends a form to another site without a permission, so the server checks the origin."""
    address, form = _address(mesh, "/debug/try"), {"manifests": "kind: Service"}
    async with aiohttp.ClientSession(headers={"Accept": "text/html"}) as session:
        async with session.post(address, data=form, headers=said) as refused:
            assert (
                refused.status,
                "the request comes from a page of another site" in await refused.text(),
            ) == (403, True)
        async with session.post(address, data=form) as answered:
            assert answered.status == 200
        async with session.post(_address(mesh, "/debug/policies"), data=form) as nothing:
            assert nothing.status == 405
        async with session.post(address, data={"manifests": "#" * (BYTES + 1)}) as long:
            assert "longer than 262144 bytes" in await long.text()


async def test_every_link_leads_to_an_existing_page_and_anchor(mesh: Server) -> None:
    """All links of all pages are followed, and each linked place exists."""
    seen: dict[str, str] = {}
    meant: set[tuple[str, str]] = set()
    left = [_address(mesh, path).replace(" ", "%20") for path in PAGES.values()]
    first = set(left)
    await report(mesh, "b")  # a proxy that is known by reports only is forgotten after a while
    async with aiohttp.ClientSession(headers={"Accept": "text/html"}) as session:
        while left:
            address = left.pop(0)
            async with session.get(URL(address, encoded=True)) as response:
                seen[address] = await response.text()
                answer = response.status == 200 or any(item in seen[address] for item in GONE)
                assert answer or address in first, (address, response.status)
                assert seen[address].count('<main id="content">') == 1, address
            for to in map(html.unescape, re.findall(r'href="(/[^"]*)"', seen[address])):
                further, _, anchor = _address(mesh, to).partition("#")
                meant.add((further, unquote(anchor)))
                left += [further] if further not in {*seen, *left} else []
    assert len(seen) > 2 * len(PAGES)
    assert {
        item for item in meant if item[1] and f'id="{html.escape(item[1])}"' not in seen[item[0]]
    } == set()


async def test_every_keyboard_stop_is_visible(browser: Browser, mesh: Server) -> None:
    """Each stop has a visible focus, and the link past the navigation is on the screen when focused."""
    await browser.look(1300, dark=False)
    await browser.open(_address(mesh, "/debug/explain"))
    stops: list[str] = []
    while "BUTTON" not in stops:
        await browser.press("Tab")
        name, seen = await browser.run(FOCUSED)
        assert seen, (name, stops)
        stops.append(name)
    await browser.run("document.querySelector('.skip').focus()")
    assert await browser.run("document.querySelector('.skip').getBoundingClientRect().left >= 0")
    assert stops.count("INPUT") == 8


async def test_submitted_form_shows_the_answer_and_its_parameters(browser: Browser, mesh: Server) -> None:
    """Empty fields are not sent, and the form of the answer has the submitted values."""
    await browser.look(420, dark=False)
    await browser.open(_address(mesh, "/debug/explain"))
    await browser.run(
        "for (const [name, value] of [['from', 'shop/buyer'], ['to', 'shop/shop:80']])"
        " document.querySelector(`[name=${name}]`).value = value"
    )
    await browser.submit("form")
    assert await browser.run("document.querySelector('[name=to]').value") == "shop/shop:80"
    assert "shop/buyer to shop/shop:80 GET /" in await browser.run(
        "document.querySelector('.verdict').innerText"
    )


@pytest.mark.parametrize("width", [1300, 420])
async def test_explanation_shows_the_objects_and_the_missing_yaml(
    browser: Browser, mesh: Server, width: int
) -> None:
    """Objects in force are shown, and missing YAML can be copied whole or tried with one button."""
    result = await mesh.ask("GET", "/api/v1/explain?from=shop/buyer&to=shop/shop:80&path=/sell")
    await browser.look(width, dark=width == 420)
    await browser.open(_address(mesh, PAGES["explained"]))
    first, second = "document.querySelector('.beside > :first-child')", "document.querySelector('.copied')"
    beside = f"{second}.getBoundingClientRect().left >= {first}.getBoundingClientRect().right"
    assert await browser.run(beside) is (width == 1300)
    shown = await browser.run("[...document.querySelectorAll('.beside pre')].map(each => each.textContent)")
    missing, *in_force = [list(libyaml.load_all(item)) for item in shown]
    assert missing == result["missing"] != []
    assert [item[0] for item in in_force] == [item["manifest"] for item in result["objects"]]
    assert {"TrafficTarget", "HTTPRouteGroup"} <= {item[0]["kind"] for item in in_force}
    await browser.run("getSelection().selectAllChildren(document.querySelector('.copied'))")
    assert [*libyaml.load_all(await browser.run("getSelection().toString()"))] == missing
    await browser.submit(".beside form")
    assert [*libyaml.load_all(await browser.run("document.querySelector('textarea').value"))] == missing
    verdict = await browser.run("document.querySelector('.verdict').textContent")
    assert "2 objects read" in verdict, verdict
    assert "No manifest was applied" in verdict, verdict


GOOD = (
    "<title>t</title><meta name=viewport content=width=device-width>"
    "<style>body{font-family:system-ui;background:#fff}</style><body><nav></nav><main><h1>h</h1>"
    "<p class=verdict><span class=badge>ok</span> %s</main>"
)


@pytest.mark.parametrize(
    ("page", "wrong"),
    [
        (GOOD % "x", None),
        (GOOD % "<div style=width:2000px>x</div>", "the page is"),
        (GOOD % "<div style=width:2000px>x</div>", "too wide: div"),
        (GOOD % "<div style='width:900px;overflow-x:auto'><p style=width:2000px>x</div>", "too wide: p"),
        (GOOD % "<div style='width:200px;overflow-x:auto'><p style=width:2000px>x</div>", None),
        (GOOD % "<p style='width:30px;word-break:break-all'>certificate", "broken word: certificate"),
        (GOOD % "<p style=color:#aaa>x", "contrast 2.3: p x"),
        (GOOD % "<p style=color:#767676;background:#fff>x", None),
        (GOOD % "<input name=a>", "no label: a"),
        (GOOD % "<a href=/></a><a href=/ style=padding:9px></a>", "no name: a"),
        (GOOD % "<span class=badge></span>", "a state without a word"),
        (GOOD % "<h1>again</h1>", "not 1: h1"),
        (GOOD.replace("verdict", "words") % "x", "not 1: .verdict"),
        (GOOD.replace("<title>t</title>", "") % "x", "no title"),
        (GOOD.replace("system-ui", "serif") % "x", "no style"),
        (GOOD % "<script></script>", "a script"),
        (GOOD % "<img src=a.png>", "something from elsewhere"),
        (GOOD % "<style>p{background:url(a.png)}</style>", "something from elsewhere"),
        (GOOD % "<p id=a><p id=a>", "one id twice"),
    ],
)
async def test_each_fault_of_a_page_is_found(
    browser: Browser, tmp_path: Path, page: str, wrong: str | None
) -> None:
    """Each fault is reported, and a page without a fault has no report, so the tests above can fail."""
    (tmp_path / "page.html").write_text(f"<!doctype html><html lang=en>{page}")
    await browser.look(420, dark=False)
    await browser.open(f"file://{tmp_path / 'page.html'}")
    result = await browser.run(LOOKS)
    assert (result == []) if wrong is None else any(item.startswith(wrong) for item in result), result


async def test_keyboard_stop_without_a_visible_focus_is_found(browser: Browser, tmp_path: Path) -> None:
    """A link without an outline is reported as not visible, so the test of the keyboard can fail."""
    (tmp_path / "page.html").write_text("<style>a:focus{outline:none}</style><a href=/>x</a>")
    await browser.open(f"file://{tmp_path / 'page.html'}")
    await browser.press("Tab")
    assert await browser.run(FOCUSED) == ["A", False]
