"""A state directory that cannot be written for other reasons than a full disk."""

import sqlite3

from tests.feature.state.conftest import PROXIES, Program
from tests.feature.state.test_full_disk import REMEMBERED, TROUBLE, failing, listed


def test_a_ledger_that_others_lock_keeps_nobody_out(program: Program) -> None:
    """A first connection is remembered and said, and written when the lock is gone."""
    program.issued(*PROXIES)
    server = program.serve()
    other = sqlite3.connect(program.state / "ledger.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert program.served(server, "one")
    server.until(lambda: failing(server) and server.metric("meshwright_ledger_unwritten") == 1)
    assert server.get("/healthz/ready")[1].endswith(f"; {REMEMBERED.format(1)}\n")
    other.execute("ROLLBACK")
    other.close()
    server.until(lambda: listed(program)["one"] == "claimed admitted")
    server.until(lambda: not failing(server))
    assert server.metric("meshwright_ledger_unwritten") == 0


def test_a_state_directory_that_goes_while_it_runs_is_said(program: Program) -> None:
    """What is in memory is served on; the sentence says what to do."""
    program.issued(*PROXIES)
    server = program.serve()
    program.state.rename(program.state.with_name("elsewhere"))
    server.until(lambda: failing(server))
    (said,) = server.said(TROUBLE)
    assert said["reason"] == (
        f"{program.state} is not there any more, or is another than at the start: put it back, and restart"
    )
    assert program.served(server, "one")
    assert server.get("/healthz/ready")[0] == 200
