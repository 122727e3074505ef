"""Tests of rebuilding a lost or damaged ledger from the certificates that proxies present."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from certs.custody import LEDGER_FILE, REBUILDING_FILE
from certs.ledger.sqlite import SqliteLedger
from tests.feature.state.test_lost_ca_or_ledger import without_ledger
from tests.tools.program import PROXIES, Program


def damaged_ledger(state: Path) -> None:
    """Overwrite pages in the middle of the ledger, but not its header."""
    path = state / LEDGER_FILE
    content = bytearray(path.read_bytes())
    content[4096 : 4096 * 6] = b"\xa5" * (4096 * 5)
    path.write_bytes(content)


def commanded(program: Program, *options: str) -> Any:
    """Return the command's JSON."""
    status, out, complaint = program.run(
        *("certs", "rebuild-ledger", "--state", str(program.state), "--json", *options)
    )
    assert status == 0, complaint
    return json.loads(out)


@pytest.mark.parametrize("damage", [without_ledger, damaged_ledger])
def test_rebuilt_ledger_admits_only_confirmed_proxies(used: Program, damage: Callable[[Path], None]) -> None:
    """During the rebuild no proxy is admitted, and commands refuse.

    The rebuild starts only with its option.
    """
    damage(used.state)
    sentence = used.refused()
    serial = re.findall(r"--rebuild-ledger (\S+)", sentence)[0].rstrip(",")
    assert used.refused("--rebuild-ledger", "abc123") == sentence
    server = used.serve("--rebuild-ledger", serial)
    assert server.get("/healthz/ready")[0] == 503
    assert "the ledger is being rebuilt" in server.get("/healthz/ready")[1]
    for proxy in PROXIES[:2]:
        assert not used.served(server, proxy)
    one, two = commanded(used)["candidates"]
    assert [item["cn"] for item in (one, two)] == ["one.store.shop", "two.store.shop"]
    assert [item["serial"] for item in (one, two)] == [*used.serials[:2]]
    assert (one["workload"], one["confirmed"], one["from"].partition(":")[0]) == (
        *("shop/w-one", False),
        "127.0.0.1",
    )
    result = commanded(used, "--confirm", one["serial"].upper())["candidates"]
    assert [item["confirmed"] for item in result] == [True, False]
    assert not used.served(server, "one")
    for status, out, complaint in (used.issue("one", used.files / "x"), used.revoke(one["serial"])):
        assert (status, out) == (2, "")
        assert "the ledger is being rebuilt" in complaint
    status, _, complaint = used.run("certs", "rebuild-ledger", "--state", str(used.state), "--finish")
    assert status == 2
    assert complaint.endswith("stop the server first, then finish")
    server.stop()
    assert used.refused() == sentence
    assert commanded(used, "--finish") == {"certificates": 1}
    server = used.serve("--rebuild-ledger", serial)
    assert server.get("/healthz/ready")[0] == 200
    assert [used.served(server, proxy) for proxy in PROXIES] == [True, False, False]
    with SqliteLedger.open(used.state / LEDGER_FILE) as ledger:
        (entry,) = ledger.entries()
    assert (entry.serial, entry.claimed_at is not None) == (one["serial"], True)
    assert not (used.state / REBUILDING_FILE).exists()
    server.stop()
    used.serve().stop()


def test_rebuild_cannot_finish_without_a_confirmation(used: Program) -> None:
    """A complete ledger is not rebuilt, and an unknown serial cannot be confirmed."""

    def complaint(*options: str) -> str:
        status, out, text = used.run("certs", "rebuild-ledger", "--state", str(used.state), *options)
        assert (status, out) == (2, "")
        return text

    assert "start the server with --rebuild-ledger" in complaint("--finish")
    server = used.serve()
    assert (
        complaint() == "the ledger is complete and not being rebuilt, so certificates need not be confirmed"
    )
    server.stop()
    without_ledger(used.state)
    server = used.serve("--rebuild-ledger", used.serials[0])
    assert complaint("--confirm", "abc") == "no proxy has presented a certificate with the serial abc"
    server.stop()
    assert complaint("--finish") == (
        "no certificate is confirmed yet, so the rebuilt ledger would refuse every proxy; "
        "confirm certificates first"
    )
    assert "is missing or empty" in used.refused()
