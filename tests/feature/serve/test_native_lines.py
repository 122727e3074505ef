"""Tests of output of native libraries to descriptor 2, in a separate process."""

import os
import subprocess
import sys
from pathlib import Path

from tests.tools.deadline import HANG_SECONDS

_BEGIN = """
import os, sys, time
from meshwright.controller.process.native_lines import NativeLines
def until(condition):
    limit = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.005)
"""
_HANDSHAKE = (
    "E0000 00:00:1700000000.000000  4711 handshaker.cc:1] Handshake failed with error SSL_ERROR_SSL: "
    "error:100000f7:SSL routines:OPENSSL_internal:WRONG_VERSION_NUMBER"
)


def _run(script: str, standard_error: Path) -> int:
    with standard_error.open("ab") as file:
        return subprocess.run(
            [sys.executable, "-c", _BEGIN + script], stderr=file, check=False, timeout=HANG_SECONDS
        ).returncode


def test_unwritable_output_does_not_stop_the_reader() -> None:
    """On a full disk handshakes are still counted."""
    script = f"""
with NativeLines() as native:
    os.write(2, b"some library's words\\n{_HANDSHAKE}\\n")
    until(native.handshakes.counted)
"""
    assert _run(script, Path("/dev/full")) == 0


def test_line_without_an_end_is_not_buffered(tmp_path: Path) -> None:
    """A line without an end is written on as it arrives, so it cannot fill the memory."""
    script = f"""
with NativeLines() as native:
    def written():
        try:
            os.write(2, b"x" * 4096)
        except BlockingIOError:
            pass
        return os.path.getsize({os.fspath(tmp_path / "stderr")!r}) > 65536
    until(written)
"""
    assert _run(script, tmp_path / "stderr") == 0


def test_control_characters_of_libraries_and_python_are_escaped(tmp_path: Path) -> None:
    """A line may contain a peer's name, so it must not control a terminal."""
    script = r"""
with NativeLines() as native:
    os.write(2, b"a\x1b[2J\xff\n")
    until(lambda: os.path.getsize(sys.argv[1]))
    print("b\x1b[2J", file=sys.stderr)
"""
    path = tmp_path / "stderr"
    with path.open("ab") as file:
        words = [sys.executable, "-c", _BEGIN + script, os.fspath(path)]
        assert subprocess.run(words, stderr=file, check=False, timeout=HANG_SECONDS).returncode == 0
    assert path.read_text() == "a\\x1b[2J\ufffd\nb\\x1b[2J\n"
