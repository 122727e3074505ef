"""What the agent's program imports, and so keeps beside every workload."""

import subprocess
import sys

import pytest

from cli.handover import PROGRAM

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
    f"import {PROGRAM}, sys; print(*{{name.split(chr(46))[0] for name, each in sys.modules.items() if each}})"
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
        "from cli.handover import Told, become_agent; from pathlib import Path; "
        f"Path('/proc/self/comm').write_bytes({name!r}); "
        "become_agent(Told(None, 'loud', False, frozenset()))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, "'loud' is not a valid LogLevel" in done.stderr) == (2, True), done.stderr
