"""Processes that issue and revoke in one state directory, each killed meanwhile, and a check of the rest.

Run as a program: it has imported everything that is needed, and forks for each life. A life reports each
issued item on a pipe after the issue, like a server to its client. All reported items must exist for the next
life.
"""

import contextlib
import json
import os
import random
import select
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NoReturn

import structlog

from certs.custody import LEDGER_FILE, AuthorityWithLedger, opened
from certs.ledger.entry import LedgerState
from certs.ledger.sqlite import SqliteLedger
from certs.manager import CertificateManager
from certs.proxy import issue_proxy
from certs.server import ads_server_certificate
from certs.state.pair_files import PairFiles
from certs.state.stored_pair import ADS_SERVER, holder_of
from meshwright.mesh.identity import ProxyName, ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName, TrustDomain

DOMAIN: Final = TrustDomain("cluster.local")
IDENTITY: Final = ServiceIdentity(Namespace("shop"), ServiceAccountName("store"))
DAY: Final = timedelta(days=1)
MOST_SAID: Final = 6
"""A life is killed after it has said so many things at most; where it has said none, while it opens."""

LATER: Final = 0.03
"""So many seconds later at most: somewhere in what it does next."""

DEADLINE: Final = 60.0

FRESH_EVERY: Final = 8
"""So many lives begin in a directory where nothing is yet: a CA that is being made is killed as well."""


@dataclass
class ReportedItems:
    """The reported items of all lives: issued serials, revoked serials, and the CA's fingerprint."""

    issued: set[str] = field(default_factory=set)
    revoked: set[str] = field(default_factory=set)
    authority: str = ""


def live(state: Path, number: int, pipe: int) -> NoReturn:
    """Open the state directory, and issue, revoke and renew until killed."""

    def say(*words: str) -> None:
        os.write(pipe, (" ".join(words) + "\n").encode())

    now = datetime.now(UTC)
    with opened(state, DOMAIN, now) as authority:
        say("authority", authority.authority.fingerprint)
        for turn in range(10_000):
            name = ProxyName.parse(f"u{number}-{turn}.store.shop")
            serial = issue_proxy(authority.authority, authority.ledger, name, DAY, now).serial
            authority.first.note(authority.ledger)
            say("issued", serial)
            if turn % 2:
                authority.ledger.revoke(serial, now, "a soak")
                say("revoked", serial)
            _pairs(state, authority, f"n{turn}", now)
    os._exit(1)


def _pairs(state: Path, authority: AuthorityWithLedger, name: str, now: datetime) -> None:
    """Issue the certificates that are kept as pairs; other names lead to new ones."""
    pairs = PairFiles(state)
    ads_server_certificate(authority.authority, pairs, now, (name,))
    CertificateManager(authority.authority, pairs, DAY, lambda: 0.0).ensure(IDENTITY, (name,), now)


def killed(state: Path, number: int, dice: random.Random, told: ReportedItems) -> int:
    """Run one life, and kill it at a random moment; return the number of items that it reported."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        with contextlib.suppress(BaseException):
            live(state, number, write)
        os._exit(1)  # the next life fails at the same point and reports it
    os.close(write)
    wanted, text = dice.randint(0, MOST_SAID), b""
    while text.count(b"\n") < wanted and select.select([read], [], [], DEADLINE)[0]:
        if not (some := os.read(read, 65536)):
            break
        text += some
    time.sleep(dice.uniform(0, LATER))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "a life has ended by itself: it could not go on"
    while some := os.read(read, 65536):
        text += some
    os.close(read)
    assert text.count(b"\n") >= wanted
    lines = text.decode().splitlines()
    for kind, value in (line.split() for line in lines):
        if kind == "authority":
            assert told.authority in ("", value), "another CA, though one was shown"
            told.authority = value
        else:
            (told.issued if kind == "issued" else told.revoked).add(value)
    return len(lines)


def look(state: Path, told: ReportedItems) -> None:
    """Open the directory like the next start; fail if a reported item is missing."""
    now = datetime.now(UTC)
    with opened(state, DOMAIN, now) as authority:
        assert told.authority in ("", authority.authority.fingerprint)
        told.authority = authority.authority.fingerprint
        entries = {entry.serial: entry for entry in authority.ledger.entries()}
        assert told.issued <= entries.keys(), "a certificate was handed out that nobody knows"
        lost = [item for item in told.revoked if entries[item].state is not LedgerState.REVOKED]
        assert not lost, "a revocation that was said is forgotten"
        for holder in (ADS_SERVER, holder_of(IDENTITY)):
            PairFiles(state).load(holder)  # one that is damaged is an error
        _pairs(state, authority, "after", now)
        serial = issue_proxy(
            authority.authority, authority.ledger, ProxyName.parse("u.store.shop"), DAY, now
        ).serial
        told.issued.add(serial)
        authority.first.note(authority.ledger)
    with SqliteLedger.open(state / LEDGER_FILE) as ledger:
        assert ledger.first() is not None


def _dropped(_logger: object, _name: str, _event: structlog.types.EventDict) -> NoReturn:
    raise structlog.DropEvent


def soak(directory: Path, kills: int, seed: int) -> dict[str, int]:
    """Kill a number of lives; return the counts of their outcomes."""
    structlog.configure(processors=[_dropped])
    dice, counts = random.Random(seed), Counter[str]()  # noqa: S311 - dice
    state, answer = directory / "0", ReportedItems()
    for number in range(kills):
        if number and number % FRESH_EVERY == 0:
            state, answer = directory / str(number), ReportedItems()
        counts["said"] += killed(state, number, dice, answer)
        counts["kills"] += 1
        before = len(answer.issued)
        look(state, answer)
        counts["issued"] += before
    return dict(counts)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(soak(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
