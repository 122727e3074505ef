"""Checks of `meshwright check` for a running server."""

import http.client
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from meshwright.cli.checking.judgements import certificates, replicas, server
from meshwright.cli.checking.judgements.check import Check, UnavailableCheck, listed
from meshwright.cli.checking.judgements.environment import ports
from meshwright.cli.checking.judgements.server import Answer, Proxy
from meshwright.cli.checking.server import etcd
from meshwright.cli.checking.server import responses as answers
from meshwright.cli.checking.server.paths import ServerPaths, all_ports, authority, clock, directory
from meshwright.cli.checking.server.responses import Page, Policies
from meshwright.cli.checking.timed_looks import TimedLook
from meshwright.cli.errors import UnexpectedResponse
from meshwright.cli.socket.client import API, api
from meshwright.controller.process.lock import holder
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.listening_sockets import reached_from_here

SECONDS: Final = 8.0

_T = TypeVar("_T")


def read_paths(state: Path) -> ServerPaths:
    """Return the settings and addresses of a running server; raise CommandFailed."""
    return _request(state, "/config", partial(answers.paths_of_config, state=state))


def _request(state: Path, path: str, read: Callable[[Page], _T]) -> _T:
    """Request a path of the server's API, and read the answer; raise CommandFailed."""
    result = api(state, path, seconds=SECONDS)
    try:
        return read(result)
    except ValueError as error:
        raise UnexpectedResponse(f"the server's answer to {API}{path} is not understood: {error}") from error


def checks(paths: ServerPaths) -> Iterator[Check]:
    """Make all checks; `paths` has the settings of the running server."""
    state, now = paths.state, datetime.now(UTC)
    sources, certs, proxies, policies, late = (
        _look(state, "/sources", answers.sources),
        _look(state, "/certificates", answers.every_certificate),
        _look(state, "/proxies", answers.proxies),
        _look(state, "/policies", answers.policies),
        _look(state, "/loop", answers.moments),
    )
    members = _look(state, "/replicas", answers.replicas) if paths.several else None
    at = next((host_port for purpose, _, host_port in paths.addresses if purpose == "HTTP"), None)
    ready, alive = (
        TimedLook(path, partial(_health, at, path)) for path in ("/healthz/ready", "/healthz/live")
    )
    mine = TimedLook("ports", lambda: list(all_ports(paths, lambda port: ports.ours(port, pids(state)))))

    yield directory(paths)
    pid = holder(state)
    yield Check.ok(
        "server", f"running{'' if pid is None else f' (pid {pid})'}; its sources are {listed(paths.sources)}"
    )
    yield ready.judged("readiness", server.readiness)
    yield certs.judged("ledger", lambda result: server.ledger(result.proxies.known))
    read = sources.seen()
    yield from (
        [Check.unseen("sources", read)] if isinstance(read, UnavailableCheck) else map(server.source, read)
    )
    yield authority(paths, now)
    yield from etcd.checks(paths.etcd)
    yield certs.judged("service certificates", lambda result: certificates.services(result.services, now))
    here = proxies.seen()
    # Without the list of proxies, the certificates of all proxies are judged.
    names = None if isinstance(here, UnavailableCheck) else [proxy.name for proxy in here]
    yield certs.judged(
        "proxy certificates", lambda result: certificates.proxies(result.proxies.newest(names), now)
    )
    listening = mine.seen()
    yield from [Check.unseen("ports", listening)] if isinstance(listening, UnavailableCheck) else listening
    known = certs.seen()
    yield clock(paths, () if isinstance(known, UnavailableCheck) else known.proxies.moments)
    if members is not None:
        yield members.judged("store", replicas.store)
        yield members.judged("replicas", replicas.replicas)
        yield members.judged("inputs", replicas.inputs)
    yield proxies.judged("proxies", server.connected)
    yield proxies.judged("in step", server.in_step)
    yield from _policy(policies.seen(), () if isinstance(here, UnavailableCheck) else here)
    health = alive.seen()
    loop = Answer(0, "") if isinstance(health, UnavailableCheck) else health
    yield late.judged("event loop", lambda moments: server.event_loop(loop, moments, now))


def _look(state: Path, path: str, read: Callable[[Page], _T]) -> TimedLook[_T]:
    return TimedLook(path, partial(_request, state, path, read))


def _policy(result: Policies | UnavailableCheck, proxies: tuple[Proxy, ...]) -> Iterator[Check]:
    if isinstance(result, UnavailableCheck):
        yield from (Check.unseen(name, result) for name in ("problems", "rejections", "withheld"))
        return
    yield server.problems(result.problems)
    yield server.rejections(proxies, result.problems)
    yield server.withheld(result.problems, result.failures)


def pids(state: Path) -> tuple[int, ...]:
    """Return the pid of the state directory's server, as a tuple with at most one element."""
    pid = holder(state)
    return () if pid is None else (pid,)


def _health(at: HostPort | None, path: str) -> Answer:
    if at is None:
        return Answer(0, "the server has not begun to serve")
    # The server may listen at a wildcard address; a connection needs a concrete one.
    connection = http.client.HTTPConnection(reached_from_here(at.host), at.port, timeout=SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return Answer(answer.status, answer.read().decode(errors="replace"))
    except (OSError, http.client.HTTPException) as error:
        return Answer(0, f"no answer at {at}: {error}")
    finally:
        connection.close()
