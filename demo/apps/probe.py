"""Probes: a fixed number of new requests from the network of a program, with a count of each outcome."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import aiohttp

from demo.apps import outcomes, wire
from demo.apps.messages import Answer, Request
from demo.apps.names import CALLER_HEADER, IDENTITY_HEADER, TOKEN_HEADER


@dataclass(frozen=True, slots=True)
class Probe(Request):
    """A probe: `count` HTTP requests, or database inserts if `method` is empty, to `host` and `port`.

    All requests carry `token`, so that the outcomes can be compared with the server's count. HTTP requests
    use at most `concurrency` new connections; each insert has its own connection. `timeout` is in seconds.
    """

    host: str
    port: int
    token: str
    count: int = 1
    method: str = ""
    path: str = "/"
    headers: tuple[tuple[str, str], ...] = ()
    concurrency: int = 1
    timeout: float = 20.0


@dataclass(slots=True)
class Outcomes(Answer):
    """Outcomes of a probe's requests by name, and the programs that responded."""

    results: Counter[str] = field(default_factory=Counter)
    identities: Counter[str] = field(default_factory=Counter)


async def run(probe: Probe) -> Outcomes:
    """Make the requests of a probe and count their outcomes; failed requests raise no error."""
    result = Outcomes()
    # The workers share one iterator, so that together they make exactly `count` requests.
    todo = iter(range(probe.count))
    if not probe.method:
        await asyncio.gather(*(_insert(probe, todo, result) for _ in range(probe.concurrency)))
        return result
    connector = aiohttp.TCPConnector(limit=probe.concurrency)
    timeout = aiohttp.ClientTimeout(total=probe.timeout)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        await asyncio.gather(*(_request(probe, todo, result, session) for _ in range(probe.concurrency)))
    return result


async def _request(
    probe: Probe, todo: Iterator[int], result: Outcomes, session: aiohttp.ClientSession
) -> None:
    url = f"http://{probe.host}:{probe.port}{probe.path}"
    headers = {**dict(probe.headers), TOKEN_HEADER: probe.token}
    for _ in todo:
        outcome, identity = await call(session, probe.method, url, headers)
        result.results[outcome] += 1
        if identity:
            result.identities[identity] += 1


async def call(
    session: aiohttp.ClientSession, method: str, url: str, headers: dict[str, str]
) -> tuple[str, str]:
    """Make one HTTP call; return the outcome, and the responding program if the call was served."""
    try:
        async with session.request(method, url, headers=headers) as response:
            await response.read()
            outcome = str(response.status)
            served = outcomes.is_allowed(outcome)
            return outcome, response.headers.get(IDENTITY_HEADER, "unknown") if served else ""
    except outcomes.CALL_ERRORS as error:
        return outcomes.of_error(error), ""


async def _insert(probe: Probe, todo: Iterator[int], result: Outcomes) -> None:
    for _ in todo:
        result.results[await _insert_once(probe)] += 1


async def _insert_once(probe: Probe) -> str:
    title = dict(probe.headers).get(CALLER_HEADER, "probe")
    try:
        async with asyncio.timeout(probe.timeout):
            client = await wire.Client.connect(probe.host, probe.port)
            try:
                await client.insert(title, probe.token)
            finally:
                await client.close()
    except outcomes.CALL_ERRORS as error:
        return outcomes.of_error(error)
    return outcomes.OK
