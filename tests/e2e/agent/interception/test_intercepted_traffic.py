"""Tests of intercepted traffic between two real machines: REDIRECT with IPv6, and TPROXY."""

import asyncio
import itertools
import json
import os
import signal
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import structlog

from demo.plane import COMMAND
from demo.transparent import as_user
from meshwright.mesh.workload import Capture, Transparent
from tests.e2e.agent.conftest import missing_for_namespaces
from tests.e2e.agent.machines import PROXY_UID
from tests.e2e.agent.mesh_of_machines import ADDRESSES, CALLED_AT, SWITCH, V4, V6, Meshed, policy
from tests.e2e.agent.scenes import is_alive, when
from tests.e2e.policy.applications import GREETER, HTTP
from tests.e2e.policy.calls import CLOSED, exchange, load
from tests.tools.deadline import until

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(400),
    pytest.mark.skipif(bool(missing_for_namespaces()), reason=missing_for_namespaces() or "it can run"),
]
TRANSPARENT = ("net_raw",)
"""What it takes to listen for TPROXY."""
TPROXY = Transparent(Capture.TPROXY, ipv6=True)
KINDS: dict[str, tuple[socket.AddressFamily, Transparent, tuple[str, ...]]] = {
    "redirect-ipv6": (V6, Transparent(ipv6=True), ()),
    "tproxy-ipv4": (V4, TPROXY, TRANSPARENT),
}
BOOKS = (200, f"{HTTP} /books")
REFUSED = (0, "")
MUTUAL_TLS = """
---
apiVersion: policy.meshwright.dev/v1alpha1
kind: MutualTLS
metadata: {{name: opening, namespace: default}}
spec:
  mode: {mode}
  serviceAccounts: [shop]
  plaintext: {{sources: [{sources}], matches: [{{kind: HTTPRouteGroup, name: books}}]}}
"""
INGRESS_BACKEND = """
---
apiVersion: policy.openservicemesh.io/v1alpha1
kind: IngressBackend
metadata: {{name: opening, namespace: default}}
spec:
  backends: [{{name: shop, port: {{number: {port}, protocol: http}}}}]
  sources: [{sources}]
  matches: [{{apiGroup: specs.smi-spec.io/v1alpha4, kind: HTTPRouteGroup, name: books}}]
"""
THE_SWITCH = ", ".join(
    f"{{kind: IPRange, name: '{SWITCH[item]}/{bits}'}}" for item, bits in ((V4, 32), (V6, 128))
)
SOMEBODY_ELSE = "{kind: IPRange, name: 10.79.0.0/16}"
OPENING = {
    "MutualTLS": MUTUAL_TLS.format(mode="Permissive", sources="{sources}"),
    "IngressBackend": INGRESS_BACKEND.format(port=HTTP, sources="{sources}"),
}
_log = structlog.get_logger(__name__)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=KINDS)
async def meshed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, envoy: str
) -> AsyncIterator[Meshed]:
    """Two machines in the mesh that reach each other by IPv6 or by IPv4."""
    family, how, capabilities = KINDS[request.param]
    async with AsyncExitStack() as ends:
        state = tmp_path_factory.mktemp("meshed")
        yield await Meshed.start(state, family, how, envoy, ends, capabilities)


async def test_access_log_has_the_caller_identity_and_addresses_for_both_families(meshed: Meshed) -> None:
    """Calls to addresses of both families arrive.

    The server's proxy logs the caller's identity and address, and the local address.
    """
    known = len(meshed.log("shop", "alice"))
    assert [await meshed.books("alice", address_family) for address_family in (V4, V6)] == [BOOKS, BOOKS]
    await until(lambda: _logged(meshed, "alice", known + 2))
    family = meshed.family
    for item in meshed.log("shop", "alice"):
        assert _host(item["caller_address"]) == ADDRESSES["alice"][family]
        assert _host(item["local_address"]) == ADDRESSES["shop"][family]


async def test_proxy_intercepts_its_workload_but_not_its_own_connections(meshed: Meshed) -> None:
    """Five calls are five intercepted connections, and no inbound one.

    If the proxy's own connections were intercepted, they would loop without end.
    """
    taken = r"_15001\.downstream_cx_total$"
    before = await meshed.stat("alice", taken)
    assert [await meshed.books("alice", V4) for _ in range(5)] == [BOOKS] * 5
    assert await meshed.stat("alice", taken) - before == 5
    assert await meshed.stat("alice", r"_1500[36]\.downstream_cx_total$") == 0


async def test_workload_can_call_itself_by_its_service_name(meshed: Meshed) -> None:
    """The call leaves and enters through the sidecar, authenticated like any other.

    The name is in the hosts file that the agent writes.
    """

    def named() -> set[str]:
        lines = (meshed.state / "shop" / "hosts").read_text().splitlines()
        return {line.split()[0] for line in lines if "shop.default" in line.split()}

    await when(lambda: bool(named()))
    (address,) = named()
    known = len(meshed.log("shop", "shop"))
    assert await meshed.get("shop", f"http://{address}/books") == BOOKS
    await until(lambda: _logged(meshed, "shop", known + 1))


async def test_server_first_protocol_works_through_interception(meshed: Meshed) -> None:
    """The proxies do not wait for a byte of the client, with either kind of rules."""
    assert await _greeted(meshed) == "shop speaks first\nshop: hello\n"


async def test_disallowed_calls_are_refused_at_every_address(meshed: Meshed) -> None:
    """Calls outside the policy, to the workload's own address or in plain text from outside are refused.

    So are all calls after the permission is withdrawn, except those of the workload to itself.
    """
    where = {family: ADDRESSES["shop"][family] for family in (V4, V6)}
    assert (await meshed.get("alice", f"http://{CALLED_AT[V4]}/letters"))[0] == 403

    at = {V4: f"http://{where[V4]}:{HTTP}/books", V6: f"http://[{where[V6]}]:{HTTP}/books"}
    for caller in ("alice", "switch"):
        assert [
            await meshed.get(caller, at[address_family], address_family) for address_family in (V4, V6)
        ] == [REFUSED, REFUSED]

    meshed.apply(policy("shop"))
    await until(lambda: _gets(meshed, REFUSED))
    assert await _greeted(meshed) == CLOSED
    # The shop's own idle connection came by the wider rules, and is cut off when the drain time is over.
    await until(meshed.synced)
    await until(lambda: meshed.drained("shop"))
    assert await meshed.get("shop", f"http://{CALLED_AT[V4]}/books") == BOOKS
    meshed.apply(policy("alice", "shop"))
    await until(lambda: _gets(meshed, BOOKS))


@pytest.mark.parametrize("kind", OPENING)
async def test_plain_text_callers_are_admitted_only_by_an_object_that_names_their_address(
    meshed: Meshed, kind: str
) -> None:
    """MutualTLS or IngressBackend admits plain text from the caller's real address, for its requests only.

    Callers with a certificate are admitted as before, on the connections that they have. A Strict MutualTLS
    admits no plain text.
    """
    rules = policy("alice", "shop")
    await until(meshed.synced)
    for _ in range(2):  # a call may end a connection that drains since the test before
        assert await _gets(meshed, BOOKS)
    opened = await _opened(meshed)
    for sources, wanted in ((THE_SWITCH, {BOOKS}), (SOMEBODY_ELSE, {REFUSED}), (THE_SWITCH, {BOOKS})):
        meshed.apply(rules + OPENING[kind].replace("{sources}", sources))
        await until(partial(_gets_in_plain_text, meshed, wanted))
        assert [await meshed.books("alice", address_family) for address_family in (V4, V6)] == [BOOKS, BOOKS]
    assert {status for status, _ in await _in_plain_text(meshed, "letters")} == {403}
    with meshed.place("switch").open_socket() as at:
        at.setblocking(False)
        assert await exchange(ADDRESSES["shop"][V4], GREETER, first=True, at=at) == CLOSED
    await until(lambda: _is_logged_in_plain_text(meshed, f"{kind} default/opening"))

    meshed.apply(rules + MUTUAL_TLS.format(mode="Strict", sources=THE_SWITCH))
    await until(lambda: _gets_in_plain_text(meshed, {REFUSED}))
    assert [await meshed.books("alice", address_family) for address_family in (V4, V6)] == [BOOKS, BOOKS]
    assert await _opened(meshed) == opened
    meshed.apply(rules)


async def test_connectivity_command_sends_a_request_that_is_intercepted(meshed: Meshed) -> None:
    """As root, the request goes through the sidecar, and for TCP the state of the connection is reported.

    As the proxy's user, no request is sent. If root is exempt from interception, another user's socket is
    used.
    """
    alice, control = meshed.machines["alice"], str(meshed.state / "control")
    asked = [str(COMMAND), "connectivity", "--json", "--seconds", "2", "--from", "default/alice"]

    async def seen(*arguments: str, uid: int = 0) -> tuple[int, dict[str, Any]]:
        user = (
            as_user(uid, [*asked, *arguments], [COMMAND, meshed.state], ()) if uid else [*asked, *arguments]
        )
        done = await asyncio.to_thread(alice.run, *user, check=False)
        assert done.stdout, done.stderr
        result = json.loads(done.stdout)
        return done.returncode, result

    await until(meshed.synced)
    await until(lambda: _knows_its_control_plane(meshed, "alice"))
    for service, path, request in (
        ("shop:80", "/books", {"outcome": "answered", "status": 200}),
        ("shop6:80", "/books", {"outcome": "answered", "status": 200}),
        (f"shop:{GREETER}", "/", {"outcome": "open", "status": 0}),
    ):
        code, outcome = await seen("--state", control, "--to", f"default/{service}", "GET", path)
        assert (code, outcome["agrees"]) == (0, "yes"), json.dumps(outcome["steps"])
        assert {name: outcome["request"][name] for name in request} == request
    facts = meshed.state / "facts.json"
    facts.write_text(json.dumps(outcome))
    facts.chmod(0o644)
    code, outcome = await seen("--facts", str(facts), uid=PROXY_UID)
    assert (code, outcome["request"]["outcome"]) == (2, "not tried")
    words = outcome["request"]["words"]
    assert "the user of the sidecar, whose connections are exempt from interception" in words
    assert (
        "`kubectl debug --attach POD --image=CONTROL-PLANE-IMAGE -- meshwright connectivity --facts JSON`"
        in words
    )
    rule = ("MESH_OUTBOUND", "-p", "tcp", "-m", "owner", "--uid-owner", "0", "-j", "RETURN")
    await asyncio.to_thread(alice.run, "iptables", "-t", "nat", "-I", *rule)
    code, outcome = await seen("--facts", str(facts))
    await asyncio.to_thread(alice.run, "iptables", "-t", "nat", "-D", *rule)
    assert (code, outcome["request"]["outcome"]) == (0, "open")


async def _knows_its_control_plane(meshed: Meshed, name: str) -> bool:
    _, text = await meshed.agents[name].get(f"{meshed.agents[name].status}/healthz/status")
    return bool(json.loads(text)["control_plane"]["reached"])


async def test_control_plane_crash_and_hot_restart_lose_no_call_and_a_killed_envoy_recovers(
    meshed: Meshed,
) -> None:
    """New connections of both families continue.

    A crash of the control plane and hot restarts lose no call. Calls fail while an Envoy is dead, never reach
    another server, and succeed once it is back.
    """
    async with load(_both(meshed), 4) as under:
        await under.more(100)
        for name in ADDRESSES:
            lost = Counter(under.every)
            await _killed(meshed, name)
            lost = under.every - lost
            since = await under.more(100)
            _say(meshed, f"the Envoy of {name} killed", lost, since)
            assert set(lost) <= {"200", "0", "503"}
            assert set(since) == {"200"}

        await until(lambda: _is_known_what_envoys_show(meshed))
        before = Counter(under.every)
        await meshed.crash()
        await under.more(100)
        await meshed.serve()
        await until(meshed.synced)
        await until(
            lambda: _is_known_what_envoys_show(meshed)
        )  # a reconnected proxy has acknowledged nothing yet
        await under.more(100)
        _say(meshed, "the control plane killed and back", under.every - before)
        assert set(under.every - before) == {"200"}

        before = Counter(under.every)
        for name in ADDRESSES:
            await _hot_restarted(meshed, name)
            await under.more(100)
        _say(meshed, "a hot restart of each Envoy", under.every - before)
        assert set(under.every - before) == {"200"}


async def _is_known_what_envoys_show(meshed: Meshed) -> bool:
    """Return whether `/debug/certs` has for each proxy the serial that its Envoy presents."""
    result = (await meshed.ask("/debug/certs"))["participants"]
    fields = {
        item["cn"].partition(".")[0]: item["service_certificate"] for item in result if item["takes_part"]
    }
    shown = set()
    for agent in meshed.agents.values():
        _, text = await agent.get(f"{agent.admin}/certs")
        chains = (
            chain for certificate in json.loads(text)["certificates"] for chain in certificate["cert_chain"]
        )
        shown |= {chain["serial_number"].lstrip("0") for chain in chains}
    held = {None if item is None else item["serial"] for item in fields.values()}
    return len(fields) == len(meshed.agents) and held <= shown


@pytest.mark.nightly  # in CI test_interception.py changes the rules under load
async def test_change_between_redirect_and_tproxy_loses_no_call(tmp_path: Path, envoy: str) -> None:
    """The mesh changes from REDIRECT to TPROXY and back by a manifest and the rules.

    Envoy is not restarted.
    """
    redirect = Transparent(ipv6=True)
    async with AsyncExitStack() as ends:
        meshed = await Meshed.start(tmp_path, V4, redirect, envoy, ends, TRANSPARENT)
        async with load(_both(meshed), 2) as under:
            await under.more(50)
            meshed.declare(TPROXY)
            await until(lambda: _listens(meshed, "inbound-listener-tproxy-ipv6", there=True))
            await meshed.intercept(TPROXY)
            await under.more(50)
            assert await meshed.get("switch", f"http://{ADDRESSES['shop'][V4]}:{HTTP}/books") == REFUSED
            assert await meshed.stat("shop", r"_15006\.no_filter_chain_match$") > 0
            await meshed.intercept(redirect)
            meshed.declare(redirect)
            await until(lambda: _listens(meshed, "inbound-listener-tproxy-ipv6", there=False))
            await under.more(50)
        _log.info("to tproxy and back", **dict(under.every))
        assert set(under.every) == {"200"}
        assert [len(agent.started()) for agent in meshed.agents.values()] == [1, 1]


async def _listens(meshed: Meshed, name: str, *, there: bool) -> bool:
    agent = meshed.agents["shop"]
    _, text = await agent.get(f"{agent.admin}/listeners")
    return (name in {line.partition("::")[0] for line in text.splitlines()}) is there


async def test_tproxy_without_its_capability_is_reported_and_redirect_still_works(
    tmp_path: Path, envoy: str
) -> None:
    """Envoy may not create the transparent socket and rejects that listener, which is reported.

    The listener for REDIRECT is in force.
    """
    async with AsyncExitStack() as ends:
        how = Transparent(Capture.TPROXY)
        meshed = await Meshed.without_agents(tmp_path, V4, how, envoy, ends)
        agent = await meshed.agent("shop", ())

        async def rejected() -> bool:
            result = (await meshed.ask("/debug/policies"))["problems"]
            answer = [item for item in result if item["code"] == "resource-rejected"]
            return [item["field"] for item in answer] == ["listener inbound-listener-tproxy"]

        await until(rejected)
        _, text = await agent.get(f"{agent.admin}/listeners")
        names = {line.partition("::")[0] for line in text.splitlines()}
        assert names == {"inbound-listener", "outbound-listener"}


def _say(meshed: Meshed, what: str, outcomes: Counter[str], since: Counter[str] | None = None) -> None:
    sent, failed = outcomes.total(), outcomes.total() - outcomes["200"]
    after = (
        {} if since is None else {"sent_since": since.total(), "failed_since": since.total() - since["200"]}
    )
    _log.info(what, capture=meshed.how.capture.value, sent=sent, failed=failed, **dict(outcomes), **after)


def _both(meshed: Meshed) -> Callable[[], Awaitable[str]]:
    """Return a call that alternates between both families and returns the status."""
    families = itertools.cycle((V4, V6))

    async def call() -> str:
        return str((await meshed.books("alice", next(families)))[0])

    return call


async def _killed(meshed: Meshed, name: str) -> None:
    """Kill a machine's Envoy and wait until the next one serves."""
    agent = meshed.agents[name]
    known = agent.started()
    os.kill(known[-1], signal.SIGKILL)
    await when(lambda: len(agent.started()) > len(known))
    await until(agent.ready)
    await until(meshed.serves)


async def _hot_restarted(meshed: Meshed, name: str) -> None:
    """Change a machine's bootstrap and wait until the next epoch serves alone."""
    agent = meshed.agents[name]
    epoch = await agent.epoch()
    (meshed.state / name / "override.json").write_text(json.dumps({"node": {"metadata": {"new": True}}}))

    async def new() -> bool:
        return await agent.epoch() == epoch + 1

    await until(new)
    await when(lambda: not is_alive(agent.started()[-2]))


def _host(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")


async def _logged(meshed: Meshed, caller: str, count: int) -> bool:
    return len(meshed.log("shop", caller)) >= count


async def _in_plain_text(meshed: Meshed, what: str = "books") -> list[tuple[int, str]]:
    """Call the shop from outside the mesh, at its addresses of both families."""
    where = ADDRESSES["shop"]
    at = {V4: f"http://{where[V4]}:{HTTP}/{what}", V6: f"http://[{where[V6]}]:{HTTP}/{what}"}
    return [await meshed.get("switch", at[address_family], address_family) for address_family in (V4, V6)]


async def _gets_in_plain_text(meshed: Meshed, wanted: set[tuple[int, str]]) -> bool:
    return set(await _in_plain_text(meshed)) == wanted


async def _is_logged_in_plain_text(meshed: Meshed, policy: str) -> bool:
    """Return whether the shop's proxy has logged callers of both families and the admitting object."""
    logged = meshed.log("shop", None)
    there = {_host(item["caller_address"]) for item in logged if item.get("policy") == policy}
    return there == {SWITCH[V4], SWITCH[V6]}


async def _opened(meshed: Meshed) -> int:
    """Return how many connections to the shop alice's proxy has opened."""
    return await meshed.stat("alice", r"^cluster\.default/shop.*upstream_cx_total$")


async def _gets(meshed: Meshed, wanted: tuple[int, str]) -> bool:
    return [await meshed.books("alice", address_family) for address_family in (V4, V6)] == [wanted, wanted]


async def _greeted(meshed: Meshed) -> str:
    with meshed.place("alice").open_socket() as at:
        at.setblocking(False)
        return await exchange(CALLED_AT[V4], GREETER, first=True, at=at)
