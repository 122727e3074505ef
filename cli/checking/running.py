"""What `meshwright check` looks at of a server that runs."""

import http.client
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from checks import certificates, ports, server
from checks.check import Check, Unseen
from checks.server import Answer
from cli.checking import answers
from cli.checking.looking import Look
from cli.checking.told import Page, Told, all_ports, authority, clock, directory, rows
from cli.client import ask
from cli.errors import ServerRefused
from controller.process.lock import holder
from mesh.host_port import HostPort

SECONDS: Final = 8.0
_PAGES: Final = ("/debug/sources", "/debug/certs", "/debug/proxy", "/debug/policies", "/debug/loop")


def asked(state: Path, path: str) -> Page:
    """Ask the server for a page; raise CommandFailed."""
    found = ask(state, "GET", path, seconds=SECONDS)
    if not isinstance(found, dict):
        raise ServerRefused(f"the server's answer to {path} is not understood")
    return found


def checks(state: Path, config: Page) -> Iterator[Check]:
    """Look at it all; `config` is what it said of its settings."""
    told, now = _told(state, config), datetime.now(UTC)
    look = {path: Look(path, partial(asked, state, path)) for path in _PAGES}
    at = next((each for purpose, _, each in told.addresses if purpose == "HTTP"), None)
    ready, alive = (Look(path, partial(_health, at, path)) for path in ("/healthz/ready", "/healthz/live"))
    mine = Look("ports", lambda: list(all_ports(told, lambda port: ports.ours(port, pids(state)))))

    yield directory(told)
    pid = holder(state)
    yield Check.ok(
        "server", f"it answers{'' if pid is None else f' (pid {pid})'}; its mesh directory is {told.mesh}"
    )
    yield ready.judged("readiness", server.readiness)
    yield look["/debug/certs"].judged("ledger", lambda page: server.ledger(len(rows(page))))
    yield from _each("sources", look["/debug/sources"].seen())
    yield authority(told, now)
    yield look["/debug/certs"].judged(
        "service certificates", lambda page: certificates.services(answers.services(page), now)
    )
    names = look["/debug/proxy"].seen()
    known = None if isinstance(names, Unseen) else [each.name for each in answers.proxies(names)]
    yield look["/debug/certs"].judged(
        "proxy certificates", lambda page: certificates.proxies(answers.newest(page, known), now)
    )
    found = mine.seen()
    yield from [Check.unseen("ports", found)] if isinstance(found, Unseen) else found
    yield clock(told, look["/debug/certs"].seen())
    yield look["/debug/proxy"].judged("proxies", lambda page: server.connected(answers.proxies(page)))
    yield look["/debug/proxy"].judged("in step", lambda page: server.in_step(answers.proxies(page)))
    yield from _policy(look["/debug/policies"], names)
    health = alive.seen()
    yield look["/debug/loop"].judged(
        "event loop",
        lambda page: server.event_loop(
            Answer(0, "") if isinstance(health, Unseen) else health, answers.moments(page), now
        ),
    )


def _policy(look: "Look[Page]", proxies: Page | Unseen) -> Iterator[Check]:
    page = look.seen()
    if isinstance(page, Unseen):
        yield from (Check.unseen(name, page) for name in ("problems", "rejections", "withheld"))
        return
    found = answers.problems(page)
    known = () if isinstance(proxies, Unseen) else answers.proxies(proxies)
    yield server.problems(found)
    yield server.rejections(known, found)
    yield server.withheld(found, answers.failures(page))


def _each(name: str, page: Page | Unseen) -> Iterator[Check]:
    if isinstance(page, Unseen):
        yield Check.unseen(name, page)
        return
    yield from map(server.source, answers.sources(page))


def pids(state: Path) -> tuple[int, ...]:
    """Return the process that has the state directory."""
    pid = holder(state)
    return () if pid is None else (pid,)


def _health(at: HostPort | None, path: str) -> Answer:
    if at is None:
        return Answer(0, "the server has not begun to serve")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(at.host, at.host)  # noqa: S104 - asked, not listened at
    connection = http.client.HTTPConnection(host, at.port, timeout=SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return Answer(answer.status, answer.read().decode(errors="replace"))
    except (OSError, http.client.HTTPException) as error:
        return Answer(0, f"nobody answers at {at}: {error}")
    finally:
        connection.close()


def _told(state: Path, config: Page) -> Told:
    """Return what a running server says it was told, and where it listens."""
    settings = _object(config.get("settings"))
    words = {"ads": "ADS", "http": "HTTP"}
    addresses = tuple(
        (words.get(name, name), f"--{name}-address", HostPort.parse(str(at)))
        for name, at in _object(config.get("listening")).items()
    )
    domain, shared = str(settings.get("trust_domain")), bool(settings.get("shared_state"))
    return Told(state, Path(str(settings.get("mesh"))), domain, shared, addresses)


def _object(found: object) -> Page:
    return found if isinstance(found, dict) else {}
