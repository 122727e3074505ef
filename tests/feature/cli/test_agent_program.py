"""The agent's program as a process: what it imports, and so keeps beside every workload, and how it ends."""

import subprocess
import sys
from pathlib import Path

import pytest

from meshwright.cli.process.handover import PROGRAM

HEAVY = (
    *(
        "typer",
        "pydantic",
        "rich",
        "grpc",
        "google",
        "envoy_data_plane",
        "betterproto2",
        "watchfiles",
        "anyio",
        "cryptography",
    ),
    *("yaml", "dns", "re2", "prometheus_client", "protos", "specs", "catalog", "providers", "delivery"),
)
SHOWN = (
    f"import {PROGRAM}, sys\n"
    "names = (name.removeprefix('meshwright.') for name, module in sys.modules.items() if module)\n"
    "print(*{name.partition('.')[0] for name in names})"
)


@pytest.fixture(scope="module")
def imported() -> frozenset[str]:
    """Import it as it is run, and return the packages that are there then."""
    done = subprocess.run([sys.executable, "-c", SHOWN], capture_output=True, text=True, check=True)
    return frozenset(done.stdout.split())


@pytest.mark.parametrize("package", HEAVY)
def test_what_is_heavy_is_not_imported(imported: frozenset[str], package: str) -> None:
    """The command line, the server's packages, and every codec."""
    assert package not in imported


def test_it_imports_what_it_needs(imported: frozenset[str]) -> None:
    """So that the names above are looked for in the right place."""
    assert {"agent", "aiohttp", "sidecars", "structlog"} <= imported


@pytest.mark.parametrize("name", [b"meshwright", b"mesh\xc3", b"\xff"])
def test_it_goes_on_whatever_its_process_is_called(name: bytes) -> None:
    """A name is any 15 bytes, maybe cut within a character."""
    script = (
        "from meshwright.cli.process.handover import AgentCommandLine, become_agent; from "
        f"pathlib import Path; Path('/proc/self/comm').write_bytes({name!r}); "
        "become_agent(AgentCommandLine(None, 'loud', False, frozenset()))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, "'loud' is not a valid LogLevel" in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize(
    ("mode", "sentence"),
    [
        (
            0o775,
            ("meshwright: {run} can be written by other users (its mode is 0775): chmod 700 {run}\n"),
        ),
        (0o700, "meshwright: cannot read {folder}/proxy.key: No such file or directory\n"),
        (None, "meshwright: cannot use the directory {run}: Not a directory\n"),
    ],
    ids=["others could put another bootstrap there", "nobody will bring credentials", "no directory"],
)
def test_an_agent_that_cannot_begin_says_why(mode: int | None, sentence: str, tmp_path: Path) -> None:
    """In one sentence, although it is another program by then; it waits for nothing."""
    run = tmp_path / "run"
    if mode is None:
        run.touch()
        run /= "run"
    else:
        run.mkdir()
        (run / "bootstrap.json").write_text("{}")
        run.chmod(mode)
    command = [
        sys.executable,
        "-c",
        "from meshwright.cli.main import main; main()",
        "agent",
        "--log-level",
        "error",
    ]
    command += ["--credentials", str(tmp_path), "--ads", "127.0.0.1:1", "--status", "127.0.0.1:0"]
    done = subprocess.run([*command, "--run", str(run)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == sentence.format(run=run, folder=tmp_path)
