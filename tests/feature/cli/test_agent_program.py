"""Tests of the agent's program as a process: its imports, which cost memory per workload, and its exit."""

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
    """The packages that are loaded after an import of the agent's program."""
    done = subprocess.run([sys.executable, "-c", SHOWN], capture_output=True, text=True, check=True)
    return frozenset(done.stdout.split())


@pytest.mark.parametrize("package", HEAVY)
def test_agent_does_not_import_heavy_packages(imported: frozenset[str], package: str) -> None:
    """The agent loads no command line, no server package and no codec, because each costs memory."""
    assert package not in imported


def test_agent_imports_its_own_packages(imported: frozenset[str]) -> None:
    """Packages that the agent needs are loaded, so the test above looks in the right place."""
    assert {"agent", "aiohttp", "sidecars", "structlog"} <= imported


@pytest.mark.parametrize("name", [b"meshwright", b"mesh\xc3", b"\xff"])
def test_agent_starts_with_any_process_name(name: bytes) -> None:
    """Invalid UTF-8 is no failure, because a name has 15 bytes and may be cut within a character."""
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
def test_agent_that_cannot_start_prints_one_reason(mode: int | None, sentence: str, tmp_path: Path) -> None:
    """An unsafe or invalid directory or missing credentials is one message and status 2, without a wait."""
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
