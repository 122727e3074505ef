"""Tests of a state directory that the next release takes over, and that the release before gets back.

Every server is a real process. Its log may not have a warning or an error, because a state file that a
release cannot read is ignored with an error in the log, and the server then works without the file.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest

from tests.feature.dns.dnsmasq import needs_dnsmasq, running
from tests.feature.dns.test_dns_service import FOUND
from tests.feature.rejection.test_rejections import DOCUMENTS, SHOP
from tests.meshes import texts
from tests.tools.deadline import wait_until
from tests.tools.forked_cli import Typed
from tests.tools.program import SECONDS, Program, Server
from tests.upgrades.proxies import DATABASE, Received, document, joined, picky, received, token
from tools.release_before import before as version_before
from xds.protocol.resources.resource import ROUTE, ResourceName

PORTS = ("--set=enrolment_address=127.0.0.1:0", "--set=renewal_address=127.0.0.1:0")
EXPECTED = {"client refused", "event loop blocked", "join refused"}
"""Warnings about what the tests do, and about a busy machine."""
MESH = texts.joined(
    texts.service("store", texts.port(80, 18080)),
    *(
        texts.workload(f"w-{uuid}", f"10.0.0.{number}", app="store", account="store", uuid=uuid)
        for number, uuid in enumerate(("one", "two", "three", "four", "five"), 1)
    ),
    texts.route_group("all", texts.match("all", ".*", "methods: ['*']")),
    texts.target("all", "store", "store", texts.http("all")),
)
"""A service whose workloads may call each other."""


@dataclass(frozen=True)
class Known:
    """Knowledge of a server about certificates and tokens: the CA, and states by serial or id."""

    ca: bytes
    certificates: dict[object, object]
    tokens: dict[object, object]


def known(program: Program) -> Known:
    """Ask the running server."""
    at = ("--state", str(program.state))
    certificates = document(program, "certs", "list", *at)["proxy_certificates"]
    tokens = document(program, "certs", "token", "list", *at)["join_tokens"]
    assert isinstance(certificates, list)
    assert isinstance(tokens, list)
    return Known(
        (program.state / "ca" / "ca.pem").read_bytes(),
        {item["serial"]: item["state"] for item in certificates},
        {item["id"]: item["used"] for item in tokens},
    )


def stop(server: Server) -> None:
    """Stop the server; its log may not have an unexpected warning or error."""
    server.stop()
    lines = [line for line in server.log() if line["level"] not in ("info", "debug")]
    assert [line for line in lines if line["event"] not in EXPECTED] == []


def until_admitted(program: Program, server: Server, *addresses: str) -> Received:
    """Connect with the first proxy's certificate until it gets these endpoints; return its resources.

    Its own endpoint is admitted only after its first connection.
    """
    last: list[Received | None] = []

    def are_those() -> bool:
        last.append(received(program, server, "one"))
        return last[-1] is not None and last[-1].endpoints == {"shop/store|18080": set(addresses)}

    wait_until(are_those, SECONDS, lambda: last[-1])
    assert last[-1] is not None
    return last[-1]


def test_commands_are_those_of_the_release_before(program: Program, typed: Typed) -> None:
    """The fixtures run two programs, so that the other tests here compare two releases."""
    assert program.run("--version") == (0, f"{version_before()}\n", "")
    program.commands = typed
    status, version, _ = program.run("--version")
    assert (status, bool(version)) == (0, True)


def test_state_directory_is_upgraded_and_rolled_back(program: Program, before: Typed, typed: Typed) -> None:
    """Each server continues where the other one stopped.

    CA, certificates, revocations and tokens are the same; joined proxies are admitted without a new
    certificate, and get the same resources; a token works once in total.
    """
    (program.mesh / "mesh.yaml").write_text(MESH)
    one, two, three = program.issued("one", "two", "three")
    used, unused = token(program, "four"), token(program, "five")
    server = program.serve(*PORTS)
    assert joined(program, server, used, "four").code is grpc.StatusCode.OK
    for uuid in ("two", "three", "four"):
        assert received(program, server, uuid) is not None
    assert program.revoke(three)[0] == 0
    first = until_admitted(program, server, "10.0.0.1", "10.0.0.2", "10.0.0.4")
    before_upgrade = known(program)
    assert [before_upgrade.certificates[serial] for serial in (one, two, three)] == [
        "claimed",
        "claimed",
        "revoked",
    ]
    assert sorted(map(str, before_upgrade.tokens.values())) == ["0", "1"]
    stop(server)

    program.commands = typed
    server = program.serve(*PORTS)
    assert known(program) == before_upgrade
    assert received(program, server, "one") == first, "also endpoints of proxies that are not connected"
    assert received(program, server, "three") is None
    assert received(program, server, "four") is not None
    assert joined(program, server, used, "thief").code is grpc.StatusCode.PERMISSION_DENIED
    assert joined(program, server, unused, "five").code is grpc.StatusCode.OK
    assert received(program, server, "five") is not None
    (six,) = program.issued("six")
    assert program.revoke(two)[0] == 0
    last = until_admitted(program, server, "10.0.0.1", "10.0.0.4", "10.0.0.5")
    after_upgrade = known(program)
    stop(server)

    program.commands = before
    server = program.serve(*PORTS)
    assert known(program) == after_upgrade
    assert after_upgrade.certificates[six] == "issued"
    assert received(program, server, "one") == last
    assert [received(program, server, uuid) for uuid in ("two", "three")] == [None, None]
    assert received(program, server, "five") is not None
    for spent in (used, unused):
        assert joined(program, server, spent, "thief").code is grpc.StatusCode.PERMISSION_DENIED
    stop(server)


def test_root_change_and_encrypted_keys_survive_upgrade_and_rollback(
    program: Program, before: Typed, typed: Typed
) -> None:
    """The release before encrypts the keys and begins to change the root.

    Each server knows the same change, waits for the same proxy, and opens the same keys. The release before
    takes the change back.
    """
    (program.mesh / "mesh.yaml").write_text(MESH)
    (passphrase := program.files / "passphrase").write_text("correct horse battery staple\n")
    passphrase.chmod(0o600)
    flags = (*PORTS, f"--set=key_passphrase_file={passphrase}")
    at = ("--state", str(program.state))
    program.issued("one")
    server = program.serve(*flags)
    document(program, "certs", "rotate-root", *at)
    first = until_admitted(program, server, "10.0.0.1")
    begun = root_change(program)
    assert (begun["stage"], begun["waiting"]) == ("trusting", ["one.store.shop"])
    stop(server)

    program.commands = typed
    server = program.serve(*flags)
    assert root_change(program) == begun
    assert received(program, server, "one") == first
    stop(server)

    program.commands = before
    server = program.serve(*flags)
    assert root_change(program) == begun
    assert received(program, server, "one") == first
    assert document(program, "certs", "rotate-root", *at, "--abort")["aborted"] is True
    stop(server)
    assert b"SEALED KEY" in (program.state / "ca" / "ca.key").read_bytes()


@pytest.fixture
def credentials(program: Program) -> Path:
    """Issue a certificate to the sidecar; return its folder."""
    folder = program.files / "credentials"
    of = ("--uuid", "one", "--service", "buyer", "--namespace", "shop", "--out", str(folder))
    status, _, complaint = program.run("certs", "issue-proxy", "--state", str(program.state), *of, "--anyway")
    assert status == 0, complaint
    return folder


@needs_dnsmasq
def test_saved_answers_are_read_by_the_other_release(
    program: Program, before: Typed, typed: Typed, credentials: Path, tmp_path: Path
) -> None:
    """After an upgrade and a rollback, without a DNS server, proxies get the saved endpoints.

    A rejected route is not sent again.
    """
    manifests = (*DOCUMENTS, texts.split("poison", "shop", ("shop-v1", 1)), FOUND)
    (program.mesh / "mesh.yaml").write_text(texts.joined(*manifests))
    with running(tmp_path / "dnsmasq") as dns:
        dns.zone(db=["10.0.0.7"])
        flags = tuple(
            f"--set={name}={value}"
            for name, value in (("dns_nameservers", dns.nameserver), ("dns_timeout_seconds", "0.2"))
        )
        server = program.serve(*flags)
        first = picky(program, server, credentials)
        assert set(first.rejected) == {(ROUTE, ResourceName(SHOP))}
        server.stop()

    for commands in (typed, before):
        program.commands = commands
        server = program.serve(*flags)
        again = picky(program, server, credentials)
        assert again.rejected == []
        assert again.held[DATABASE] == first.held[DATABASE]
        server.stop()
        assert [line["event"] for line in server.log() if "cannot be used" in line["event"]] == []


def root_change(program: Program) -> dict[str, object]:
    """Return stage and roots of the change of the root, and the proxies that it waits for."""
    status, out, complaint = program.run(
        "certs", "rotate-root", "--state", str(program.state), "--status", "--json"
    )
    assert status == 1, complaint
    result = json.loads(out)
    known = ("stage", "began", "since", "signer", "other", "trusted", "given_up")
    return {
        **{name: result[name] for name in known},
        "waiting": [item["proxy"] for item in result["waiting_for"]],
    }
