"""Tests of the check of a server of another version, whose pages lack a field or have another type."""

import json
import socketserver
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from functools import reduce
from http.server import BaseHTTPRequestHandler
from operator import getitem
from pathlib import Path
from typing import Any, Final

import pytest

from meshwright.cli.checking.judgements.check import Check, Status
from meshwright.cli.checking.server import responses as answers
from meshwright.cli.checking.server import server
from meshwright.cli.checking.server.paths import ServerPaths
from meshwright.cli.socket.client import SOCKET_NAME

Way = tuple[str | int, ...]

MADE, ENDS = "2026-01-01T00:00:00+00:00", "2126-01-01T00:00:00+00:00"
PAGES: Final[Mapping[str, Any]] = {
    "/api/v1/config": {
        "settings": {
            "mesh": "/m",
            "kubernetes": False,
            "kube_context": "",
            "providers": {},
            "trust_domain": "cluster.local",
            "shared_state": False,
        },
        "listening": {"debug": "127.0.0.1:1"},
    },
    "/api/v1/sources": {
        "sources": [
            {
                "name": "directory",
                "error": None,
                "error_since": None,
                "held": [],
                "objects": {"good": 1, "stale": 0, "refused": 0},
                "age": "1s",
            }
        ]
    },
    "/api/v1/certificates": {
        "service_certificates": [{"identity": "store", "not_before": MADE, "not_after": ENDS}],
        "proxy_certificates": [{"cn": "one", "state": "valid", "issued_at": MADE, "not_after": ENDS}],
    },
    "/api/v1/proxies": {
        "proxies": [
            {
                "cn": "one",
                "state": "connected",
                "held": False,
                "why": "",
                "sync": {"cds": "synced"},
                "pending_seconds": {"eds": 0.1},
            }
        ]
    },
    "/api/v1/policies": {
        "problems": [{"code": "MW1101", "severity": "warning", "line": "it is wrong"}],
        "failures": [{"group": "one", "error": "no"}],
    },
    "/api/v1/loop": {"late": [{"at": MADE, "seconds": 2.0, "doing": None}]},
}
LINES: Final[Mapping[str, set[str]]] = {
    "/api/v1/config": {"server"},
    "/api/v1/sources": {"sources"},
    "/api/v1/certificates": {"ledger", "service certificates", "proxy certificates"},
    "/api/v1/proxies": {"proxies", "in step"},
    "/api/v1/policies": {"problems", "rejections", "withheld"},
    "/api/v1/loop": {"event loop"},
}


def _fields(page: Any, at: Way = ()) -> Iterator[Way]:
    """Yield the path to each field of a page that has a fixed name."""
    match page:
        case dict():
            for name, item in page.items():
                yield (*at, name)
                if name not in ("listening", "sync", "pending_seconds"):
                    yield from _fields(item, (*at, name))
        case list():
            for number, item in enumerate(page):
                yield from _fields(item, (*at, number))
        case _:
            pass


def _at(page: Any, way: Way) -> Any:
    return reduce(getitem, way, page)


EVERY: Final = [(path, way) for path, page in PAGES.items() for way in _fields(page)]
HOLDING: Final = [(path, way) for path, way in EVERY if isinstance(_at(PAGES[path], way), dict | list)]


class _Server(socketserver.ThreadingUnixStreamServer):
    """Fake server that answers pages at the socket of a state directory."""

    pages: Mapping[str, Any]


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        """Answer the page of the path."""
        body = json.dumps(self.server.pages[self.path]).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log nothing."""


@contextmanager
def _serving(state: Path, pages: Mapping[str, Any]) -> Iterator[None]:
    with _Server(str(state / SOCKET_NAME), _Handler) as made:
        made.pages = pages
        threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield
        made.shutdown()


def _checked(state: Path, pages: Mapping[str, Any]) -> Mapping[str, Check]:
    with _serving(state, pages):
        return {check.name: check for check in server.checks(ServerPaths(state, None))}


def _not_understood(lines: Mapping[str, Check]) -> set[str]:
    return {line.name for line in lines.values() if "is not understood" in line.finding}


def test_complete_pages_of_a_server_are_understood(tmp_path: Path) -> None:
    """Positive control: pages with all fields are understood."""
    checks = _checked(tmp_path, PAGES)
    assert _not_understood(checks) == set()
    assert checks["proxies"].finding.startswith("1 connected")
    assert checks["server"].finding == "running; its sources are the mesh directory /m"
    assert checks["event loop"].status is Status.OK


def test_all_sources_of_a_server_are_named(tmp_path: Path) -> None:
    """A cluster and providers are named if there is no directory."""
    fields: dict[str, Any] = {"mesh": None, "kubernetes": True, "providers": {"mine": {}}}
    settings = PAGES["/api/v1/config"]["settings"] | fields
    checks = _checked(
        tmp_path, {**PAGES, "/api/v1/config": {**PAGES["/api/v1/config"], "settings": settings}}
    )
    assert checks["server"].finding == "running; its sources are a Kubernetes cluster, provider mine"


@pytest.mark.parametrize(("path", "way"), EVERY, ids=str)
def test_page_that_lacks_a_field_is_not_understood(tmp_path: Path, path: str, way: Way) -> None:
    """All lines of this page name the field and the next step; other lines are unaffected."""
    pages = deepcopy(dict(PAGES))
    holder = _at(pages[path], way[:-1])
    del holder[way[-1]]
    _require_said(_checked(tmp_path, pages), path, way)


@pytest.mark.parametrize(("path", "way"), HOLDING, ids=str)
def test_page_with_text_instead_of_an_object_is_not_understood(tmp_path: Path, path: str, way: Way) -> None:
    """A text in place of an object or list gives the same result as a missing field."""
    pages = deepcopy(dict(PAGES))
    _at(pages[path], way[:-1])[way[-1]] = "another"
    _require_said(_checked(tmp_path, pages), path, way)


def _require_said(checks: Mapping[str, Check], path: str, way: Way) -> None:
    assert _not_understood(checks) == LINES[path]
    for line in LINES[path]:
        assert f"`{way[-1]}`" in checks[line].finding
        assert path in checks[line].finding
        assert checks[line].status is not Status.OK
        assert "meshwright version" in checks[line].do


@pytest.mark.parametrize(
    ("settings", "certificate"),
    [
        ({"authority_directory": "/ca"}, Path("/ca/tls.crt")),
        ({"authority_certificate": "/ca.pem", "authority_key": "/ca.key"}, Path("/ca.pem")),
        ({}, None),
    ],
)
def test_ca_of_a_running_server_is_read_from_its_settings(
    settings: dict[str, str], certificate: Path | None
) -> None:
    """An older server without these settings has a CA in its state directory."""
    answer: dict[str, Any] = {
        "mesh": None,
        "kube_context": "",
        "kubernetes": False,
        "providers": {},
        "shared_state": False,
    }
    page = {"settings": {**answer, "trust_domain": "a.example", **settings}, "listening": {}}
    files = answers.paths_of_config(page, Path("/s")).custody.authority
    assert (None if files is None else files.now().certificate) == certificate
