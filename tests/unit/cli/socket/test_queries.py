"""Query parameters that commands send to a running server, against the parameters that the API accepts.

A connection in place of the server's socket records each request and refuses it.
"""

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

import click
import pytest
import typer

from meshwright.admin.api.replicas import routes_of_all
from meshwright.admin.api.routes import ROUTES
from meshwright.admin.api.table import PREFIX
from meshwright.admin.api.tap_query import NAMES
from meshwright.cli.main import app
from meshwright.cli.socket import client
from tests.tools.forked_cli import Done

ACCEPTED = {PREFIX + route.path: {item.name for item in route.parameters} for route in routes_of_all(ROUTES)}
ACCEPTED |= {f"{PREFIX}/tap": {*NAMES, "replica"}}
CALL = ("--from", "shop/buyer", "--to", "shop/store:80", "--header", "a: b", "GET", "/books")
LINE = json.dumps({"start_time": "2026-01-02T03:04:05Z", "local_address": "10.0.0.1:80"})
STATISTICS = (
    "--window",
    "60s",
    "--namespace",
    "shop",
    "--from",
    "shop/a",
    "--to",
    "shop/b",
    "--replica",
    "r",
)
COMMANDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "proxies": (("--replica", "r"),),
    "proxy show": (("one", "--replica", "r"),),
    "sources": (("--replica", "r"),),
    "hosts": (("--namespace", "shop"),),
    "explain": (
        CALL,
        ("--gateway", "shop/edge:443", "--host", "shop.example", "--header", "a: b", "GET", "/books"),
        (LINE,),
    ),
    "connectivity": (CALL,),
    "stat": (("services", *STATISTICS),),
    "top": (("edges", *STATISTICS),),
    "tap": (
        (
            *("shop/store", "--proxy", "one", "--from", "shop/a", "--from", "shop/b", "--method", "GET"),
            *("--path", "/a", "--status", "5xx", "--for", "1m", "--limit", "9", "--replica", "r"),
        ),
    ),
}
"""Commands with all options that select the answer of the server."""
OTHERS = {
    *("--state", "--json", "--watch", "--no-request", "--seconds", "--facts", "--agent", "--help"),
    *("--mesh", "--kubernetes", "--kubeconfig", "--context", "--kube-context", "--namespaces"),
    *("--namespace-selector", "--control-plane-namespace"),
}
"""Options that change the form of an answer, or its source."""


class Recorder:
    """A connection to no server."""

    asked: list[str]
    timeout = 1.0

    def __init__(self, *_: object) -> None:
        pass

    def request(self, _method: str, url: str, *_: object) -> None:
        """Record a request, and refuse it."""
        self.asked.append(url)
        raise ConnectionRefusedError

    def close(self) -> None:
        """Do nothing."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the URLs that commands request."""
    result: list[str] = []
    monkeypatch.setattr(Recorder, "asked", result, raising=False)
    monkeypatch.setattr(client, "UnixConnection", Recorder)
    return result


def _accepted(path: str) -> set[str]:
    """Return the parameters that the API accepts at a path; the path must exist."""
    (found,) = (
        names for known, names in ACCEPTED.items() if re.fullmatch(known.replace("{name}", "[^/]+"), path)
    )
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_api_accepts_every_parameter_of_a_command(
    run: Callable[..., Done], asked: list[str], name: str
) -> None:
    """A command that sends an unknown parameter would get the status 400."""
    for arguments in COMMANDS[name]:
        done = run(*name.split(), *arguments, MESHWRIGHT_STATE="state")
        assert done.stderr.startswith("meshwright: no server is running")
    assert len(asked) == len(COMMANDS[name])
    sent = [(path, dict(parse_qsl(query))) for path, _, query in (url.partition("?") for url in asked)]
    assert all(query for _, query in sent)
    assert [(path, sorted(query.keys() - _accepted(path))) for path, query in sent] == [
        (path, []) for path, _ in sent
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_options_of_a_command_are_all_tried(name: str) -> None:
    """A new option must be in the table above, so that the API knows the option's parameter."""
    command: Any = typer.main.get_command(app)
    for word in name.split():
        command = command.get_command(click.Context(command), word)
    options = {option for item in command.params for option in item.opts if option.startswith("--")}
    typed = {word for arguments in COMMANDS[name] for word in arguments if word.startswith("--")}
    assert options - OTHERS == typed - OTHERS
