"""Tests of the pages' verdicts, and of the escaping of all values on pages."""

from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request

from meshwright.admin.html.frame import PageRequest
from meshwright.admin.html.looks import (
    certificates,
    connectivity,
    explain,
    mesh,
    policies,
    proxies,
    pushes,
    versions,
)
from meshwright.admin.html.renderer import drawn
from meshwright.admin.html.tones import Tone, badges
from meshwright.admin.jsonable import Document
from meshwright.admin.pages.calls import connectivity as connectivity_page
from meshwright.admin.pages.routes import pages
from meshwright.mesh.gateway.rules import Rule
from meshwright.providers.contract import Freshness, Watch
from tests.meshes import gateway as g
from tests.meshes import values as a
from xds.protocol.resources.snapshot import Snapshot
from xds.stream_status import SyncState

GOOD, WARNING, BAD, PLAIN = Tone.GOOD, Tone.WARNING, Tone.BAD, Tone.PLAIN
EVIL = "<evil a='\"&>"
WELL: Document = {"cn": "a.b.c", "state": "connected", "sync": {"route": "synced"}, "why": "", "age": "3 s"}
REJECTING = WELL | {"sync": {"route": "nacked"}, "why": "route rejected: x"}
AWAY = WELL | {"state": "expected", "sync": {}, "why": "never connected"}
LATE = WELL | {"sync": {"route": "pending"}, "why": "route pending for 3 s"}


@pytest.mark.parametrize(
    ("found", "tone", "sentence"),
    [
        ([], PLAIN, "No proxy is known."),
        ([WELL], GOOD, "1 proxy is connected and in step."),
        ([WELL, AWAY], WARNING, "1 of 2 proxies in step."),
        ([WELL, LATE], WARNING, "1 of 2 proxies in step."),
        (
            [WELL, REJECTING],
            BAD,
            "1 of 2 proxies in step; 1 with a rejection, a failed group or an invalid certificate.",
        ),
        ([WELL | {"why": "group failed: x"}], BAD, None),
        ([AWAY | {"why": "certificate expired"}], BAD, None),
    ],
)
def test_verdict_on_proxies_counts_those_in_sync(found: list[Any], tone: Tone, sentence: str | None) -> None:
    """The verdict on proxies counts those in sync, and its tone is that of the worst proxy."""
    verdict = proxies.of_one({"proxies": found})
    assert verdict.tone is tone
    assert sentence in (None, verdict.sentence)


@pytest.mark.parametrize(
    ("verdict", "tone", "sentence"),
    [
        (proxies.of_one(WELL), GOOD, "Connected for 3 s: in step."),
        (proxies.of_one(REJECTING), BAD, "Connected for 3 s: route rejected: x."),
        (proxies.of_one(AWAY), WARNING, "Expected for 3 s: never connected."),
        (proxies.of_one({"usage": ""}), PLAIN, "Choose a proxy."),
        (pushes.of_streams({"streams": []}), PLAIN, "No stream is open."),
        (
            pushes.of_streams({"streams": [{"types": {"route": {"state": "synced"}}}]}),
            GOOD,
            "1 stream is open, and all resource types are synced.",
        ),
        (
            pushes.of_streams({"streams": [{"types": {"route": {"state": "nacked"}}}]}),
            BAD,
            "1 stream is open; resource types that are not synced: 1 nacked.",
        ),
        (policies.of_policies({}), WARNING, "No object is in force."),
        (
            policies.of_policies({"objects": [None]}),
            GOOD,
            "1 object is in force, without errors and warnings.",
        ),
        (policies.of_policies({"problems": [{"severity": "info"}], "objects": [None]}), GOOD, None),
        (
            policies.of_policies({"problems": [{"severity": "warning"}]}),
            WARNING,
            "Problems: 1 warning.",
        ),
        (policies.of_policies({"problems": [{"severity": "error"}] * 2}), BAD, "Problems: 2 errors."),
        (policies.of_policies({"failures": [{}]}), BAD, "Problems: 1 failed group."),
        (certificates.of_certificates({}), PLAIN, None),
        (certificates.of_certificates({"service_certificates": [{"seconds_left": 9}]}), GOOD, None),
        (certificates.of_certificates({"service_certificates": [{"seconds_left": 0}]}), BAD, None),
        (
            certificates.of_certificates(
                {
                    "proxy_certificates": [
                        {"cn": "a", "issued_at": "2", "expired": False},
                        {"cn": "a", "issued_at": "1", "expired": True},
                        {"cn": "b", "issued_at": "1", "expired": True, "state": "revoked"},
                    ]
                }
            ),
            GOOD,
            "0 service certificates, 3 proxy certificates; none in use has expired.",
        ),
        (mesh.of_sources({}), WARNING, "No source is configured, so the mesh is empty."),
        (
            mesh.of_sources({"sources": [{"name": "d", "error": "x"}]}),
            BAD,
            "Degraded: d cannot be read completely; their last objects stay in force.",
        ),
        (mesh.of_sources({"sources": [{"objects": {"stale": 2}, "held": ["x"]}]}), WARNING, None),
        (mesh.of_sources({"sources": [{"objects": {"good": 1}}]}), GOOD, None),
        (mesh.of_loop({"late": []}), GOOD, "The event loop was never blocked."),
        (mesh.of_loop({"late": [{"seconds": 0.1}]}), GOOD, None),
        (
            mesh.of_loop({"late": [{"seconds": 1.5}]}),
            WARNING,
            "The event loop was blocked 1 time (longest: 1.500 s).",
        ),
        (mesh.of_config({"mesh_config": None}), WARNING, None),
    ],
)
def test_verdict_of_each_page_has_a_tone_and_a_sentence(
    verdict: Any, tone: Tone, sentence: str | None
) -> None:
    """Each page's verdict has a tone from good to bad, and a sentence that gives the reason."""
    assert verdict.tone is tone
    assert sentence in (None, verdict.sentence)


@pytest.mark.parametrize(
    ("answer", "in_force", "tone"),
    [
        ("allowed", "yes", GOOD),
        ("allowed", "unknown", WARNING),
        ("refused", "yes", BAD),
        ("allowed", "no", BAD),
    ],
)
def test_verdict_on_a_call_is_good_only_if_policy_is_in_force(answer: str, in_force: str, tone: Tone) -> None:
    """The verdict's word is the policy's answer. Only an answer that the sidecars enforce can be good."""
    result: Document = {"from": "a/b", "to": "c/d:80", "method": "GET", "path": "/", "headline": "so it is"}
    verdict = explain.of_explained(result | {"answer": answer, "in_force": in_force})
    assert (verdict.tone, verdict.word, verdict.sentence) == (tone, answer, "a/b to c/d:80 GET /: so it is.")


def test_badges_merge_equal_states_and_put_the_worst_first() -> None:
    """Equal states are one badge.

    Of different states the worst comes first, and the good ones are counted.
    """
    assert badges([("a", "synced"), ("b", "synced")]) == '<span class="badge good">synced</span>'
    assert badges([("a", "synced"), ("b", "nacked"), ("c", "synced")]) == (
        '<span class="badge bad">b nacked</span> <span class="badge good">2 synced</span>'
    )


def _poisoned(value: Any) -> Any:
    """Return JSON in which every text and one added name per mapping contain markup."""
    match value:
        case dict():
            return {name: _poisoned(inner) for name, inner in value.items()} | {EVIL: EVIL}
        case list():
            return [*map(_poisoned, value), *([EVIL] if value and isinstance(value[0], str) else [])]
        case str():
            return EVIL + value
        case _:
            return value


@pytest.mark.parametrize(
    "asked",
    [
        *("/debug/proxy", "/debug/proxy?proxy=uuid-1", "/debug/proxy/show?proxy=uuid-1", "/debug/xds"),
        *("/debug/xds?proxy=uuid-1&resource=route/a", "/debug/published", "/debug/policies", "/debug/access"),
        *("/debug/policies?object=Service+shop/store", "/debug/certs", "/debug/config", "/debug/loop"),
        "/debug/policies?object=HTTPRoute+default/web",
        *("/debug/sources", "/debug/explain?from=shop/buyer&to=shop/store:80&path=/sell", "/debug/explain"),
    ],
)
async def test_values_on_pages_are_escaped(reading: Any, now: Any, stream_of: Any, asked: str) -> None:
    """Markup in any field of any page, or in the query, is shown as text."""
    reading.the_snapshot = Snapshot.of([])
    reading.the_streams = (stream_of(1, (SyncState.SYNCED, None)),)
    watch = Watch("pods", "shop", now, now, now, 1, 2, {"gone": 1}, "no", now)
    reading.the_freshness = {**reading.the_freshness, "kubernetes": Freshness(watches=(watch,))}
    if "HTTPRoute" in asked:
        route = g.http_route("web", Rule(), parents=(g.parent("store"),))
        reading.the_view = g.view(a.service("store"), route)
        reading.the_objects = dict(reading.the_view.sourced.values_unrecorded())
    path = asked.partition("?")[0]
    (page,) = (item for item in pages(reading, lambda: now) if item.path == path)
    result = await page.answer(make_mocked_request("GET", asked))
    text = drawn(page.look, result, PageRequest(path, (), "2026-01-02T03:04:05.000Z"), ())
    assert '<p class="verdict ' in text
    poison: list[Any] = [_poisoned(result), {EVIL: EVIL}, dict.fromkeys(result, EVIL)]
    for poisoned in poison:
        text = drawn(page.look, poisoned, PageRequest(path, ((EVIL, EVIL), ("proxy", EVIL)), EVIL), ())
        assert EVIL not in text
        assert "<evil" not in text
        assert "&lt;evil" in text


def test_differences_are_marked_by_sign_and_colour() -> None:
    """Added and removed lines have a sign and a class of their own, and the verdict counts both."""
    result: Document = {
        "proxy": "a.b.c",
        "type": "route",
        "name": "r",
        "diff": ["--- x", "+++ y", "@@", "-a", "+<b>"],
    }
    text = drawn(versions.DIFFERENCE, result, PageRequest("/debug/xds/diff", (), ""), ())
    assert '<span class="removed">-a</span>\n<span class="added">+&lt;b&gt;</span></pre>' in text
    assert "route r: 1 line added, 1 removed." in text


async def test_verdict_on_connectivity_counts_sidecars_that_are_not_in_sync(reading: Any, now: Any) -> None:
    """The verdict gives the policy's answer and counts sidecars that are not in sync.

    The page names each with its reason.
    """
    asked = {"from": "shop/buyer", "to": "shop/store:80", "path": "/buy"}
    result = await connectivity_page.connectivity(reading, asked, (), now)
    verdict = connectivity.of_connectivity(result)
    assert (verdict.tone, verdict.word) == (WARNING, "allowed")
    assert verdict.sentence.endswith(
        "but it is not known whether the sidecars enforce this. 1 sidecar not in step."
    )
    drawn_page = drawn(connectivity.CONNECTIVITY, result, PageRequest("/debug/connectivity", (), ""), ())
    assert "uuid-2.buyer.shop" in drawn_page
    assert "is not connected" in drawn_page
    assert "10.0.0.1:8080" in drawn_page
    assert connectivity.of_connectivity({"usage": ""}).tone is PLAIN


class _Counted(dict[str, Any]):
    """A record that counts how often it is read."""

    reads = 0

    def get(self, key: str, default: Any = None) -> Any:
        _Counted.reads += 1
        return super().get(key, default)


def test_problems_of_objects_are_looked_up_in_linear_time() -> None:
    """Twice as many objects and problems are about twice the work.

    Of several problems of an object, the worst is shown.
    """

    def reads(count: int) -> int:
        _Counted.reads = 0
        names = [f"Service n/s{number}" for number in range(count)]
        problems = [
            _Counted(object=name, severity=item) for name in names for item in ("warning", "error", "warning")
        ]
        objects: list[Any] = [
            {"kind": "Service", "namespace": "n", "name": item.partition("/")[2]} for item in names
        ]
        page = drawn(
            policies.POLICIES,
            {"problems": [*problems], "objects": objects},
            PageRequest("/debug/policies", (), ""),
            (),
        )
        assert "with error" in page
        assert "with warning" not in page
        return _Counted.reads

    assert reads(100) < 3 * reads(50)
