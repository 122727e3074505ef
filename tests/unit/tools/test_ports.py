"""Test of free ports for programs that are about to start: each is given once among all processes."""

import os
import subprocess
import sys

import pytest

from tools import ports
from tools.ports import free_port

# Below the ports of other tests, and different in each process, because two checkouts may run tests at once.
_FIRST = 19_000 + os.getpid() % 190 * 5
_TAKE_ALL = f"""
import sys
from tools import ports
ports._ASKED_FOR_BY_NUMBER = range({_FIRST}, {_FIRST + 4})
ports._TRIES = 4
given = []
try:
    while True:
        given.append(ports.free_port("127.0.0.1"))
except OSError:
    print(*given, flush=True)
    sys.stdin.read()
"""


def test_no_two_processes_get_the_same_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port is reserved before a program listens on it, and is free again once its process has ended."""
    monkeypatch.setattr(ports, "_ASKED_FOR_BY_NUMBER", range(_FIRST, _FIRST + 5))
    monkeypatch.setattr(ports, "_TRIES", 5)
    words = [sys.executable, "-c", _TAKE_ALL]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        theirs = {int(item) for item in other.stdout.readline().split()}
        ours = free_port("127.0.0.1")
        assert ours not in theirs
        with pytest.raises(OSError, match="no port of"):
            free_port("127.0.0.1")
        other.stdin.close()
    assert free_port("127.0.0.1") in theirs
