"""Tests of systemd units: their content for given arguments, and refused arguments."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from meshwright.cli.main import app
from meshwright.cli.process.agent_settings import LOG_LEVELS
from meshwright.cli.units import AGENT_UNIT, INTERCEPT_UNIT, SERVER_UNIT, quoted
from meshwright.controller.process.logs import LogLevel
from tests.tools.command_runner import CliRunner

ROOT = Path(__file__).parents[4]
PROGRAM = "/opt/meshwright/bin/meshwright"
ADS = ("--ads", "control.example:15128")
EXAMPLES = {
    SERVER_UNIT: ("serve", "--"),
    AGENT_UNIT: ("agent", "--", *ADS, "--envoy", "/opt/envoy/bin/envoy"),
    INTERCEPT_UNIT: ("intercept", "--", "--exclude-inbound-ports", "22,15020"),
}
Unit = Callable[..., tuple[int, str, str]]


@pytest.fixture
def unit(monkeypatch: pytest.MonkeyPatch) -> Unit:
    """Return a function that prints a unit, without MESHWRIGHT_ENVOY in the environment."""
    monkeypatch.delenv("MESHWRIGHT_ENVOY", raising=False)

    def run(which: str, *arguments: str) -> tuple[int, str, str]:
        done = CliRunner().invoke(app, ("unit", which, "--program", PROGRAM, *arguments))
        return done.exit_code, done.stdout, done.stderr

    return run


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_units_equal_the_program_s_output(unit: Unit, name: str) -> None:
    """The files in docs/examples/systemd equal the printed units byte for byte."""
    status, text, _ = unit(*EXAMPLES[name])
    assert status == 0
    assert text == (ROOT / "docs" / "examples" / "systemd" / name).read_text()


def test_arguments_determine_the_permissions_of_the_unit(unit: Unit) -> None:
    """Directories, low ports and times in the arguments set the unit's paths, capabilities and timeouts."""
    served = unit("serve", "--", "--state", "/var/lib/mesh/one", "--set", "drain_seconds=30.5")[1]
    assert "--mesh /etc/meshwright/mesh --state /var/lib/mesh/one --set drain_seconds=30.5\n" in served
    assert "\nStateDirectory=mesh/one\n" in served
    assert "\nTimeoutStopSec=50\n" in served
    assert "\nAmbientCapabilities=\n" in served
    spread = ("--set", "shutdown_delay_seconds=5", "--set", "shutdown_spread_seconds=20")
    assert "\nTimeoutStopSec=50\n" in unit("serve", "--", *spread)[1]
    low = unit("serve", "--", "--debug-address", "127.0.0.1:80")[1]
    assert "\nAmbientCapabilities=CAP_NET_BIND_SERVICE\n" in low
    many = ("--run", "/run/mesh/two", "--hosts-file", "/etc/hosts", "--termination-most-seconds", "100")
    agent = unit("agent", "--tproxy", "--user", "other", "--", *ADS, *many)[1]
    for line in (
        *("RuntimeDirectory=mesh/two", "ReadWritePaths=/etc/hosts", "TimeoutStopSec=120", "User=other"),
        "AmbientCapabilities=CAP_NET_RAW",
    ):
        assert f"\n{line}\n" in agent


def test_kubeconfig_is_passed_as_a_credential(unit: Unit) -> None:
    """The unit's user exists only while it runs, so that no file could be given to it."""
    text = unit("serve", "--", "--kubernetes", "--kubeconfig", "/etc/meshwright/kubeconfig")[1]
    message = "--state /var/lib/meshwright --kubernetes --kubeconfig /etc/meshwright/kubeconfig"
    assert f" serve {message} --kubeconfig ${{CREDENTIALS_DIRECTORY}}/kubeconfig\n" in text
    assert "\nLoadCredential=kubeconfig:/etc/meshwright/kubeconfig\n" in text
    assert "LoadCredential" not in unit("serve", "--")[1]


@pytest.mark.parametrize(
    ("arguments", "variables", "told"),
    [
        (("--set", "kubernetes=yes"), {}, ""),
        (("--set", "kubernetes=no", "--set", "mesh=/srv/mesh"), {}, ""),
        ((), {"MESHWRIGHT_KUBERNETES": "yes"}, ""),
        ((), {"MESHWRIGHT_KUBERNETES": "no"}, "--mesh /etc/meshwright/mesh "),
        (("--set", "drain_seconds=1"), {}, "--mesh /etc/meshwright/mesh "),
    ],
)
def test_mesh_directory_is_set_only_without_a_cluster(
    unit: Unit,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    variables: dict[str, str],
    told: str,
) -> None:
    """A cluster in an option, a setting or the environment replaces the default directory."""
    monkeypatch.setenv("MESHWRIGHT_KUBECONFIG", "/etc/meshwright/kubeconfig")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    if "kubernetes=yes" not in arguments and variables.get("MESHWRIGHT_KUBERNETES") != "yes":
        monkeypatch.delenv("MESHWRIGHT_KUBECONFIG")
    status, text, message = unit("serve", "--", *arguments)
    assert (status, message) == (0, "")
    start = next(line for line in text.splitlines() if line.startswith("ExecStart="))
    assert f" serve {told}--state /var/lib/meshwright " in f"{start} "


def test_directory_in_a_setting_replaces_the_default(unit: Unit) -> None:
    """The default state directory is not set in addition to that of a setting."""
    text = unit("serve", "--", "--set", "state=/var/lib/other", "--mesh", "/srv/mesh")[1]
    assert "/var/lib/meshwright" not in text


def test_settings_of_the_environment_are_written_into_the_unit(
    unit: Unit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Known variables are used as by the program and written into the unit; unknown ones are left out."""
    monkeypatch.setenv("MESHWRIGHT_STATE", "/var/lib/other")
    monkeypatch.setenv("MESHWRIGHT_QUIET_SECONDS", "0.5")
    monkeypatch.setenv("MESHWRIGHT_UNKNOWN", "1")
    text = unit("serve", "--")[1]
    assert "\nStateDirectory=other\n" in text
    assert "\nEnvironment=MESHWRIGHT_QUIET_SECONDS=0.5\nEnvironment=MESHWRIGHT_STATE=/var/lib/other\n" in text
    assert "UNKNOWN" not in text


@pytest.mark.parametrize("by", ["environment", "--set"])
def test_possible_secret_is_not_written_into_a_unit(
    by: str, unit: Unit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All users can read a unit. The error does not contain the secret either."""
    given: tuple[str, ...] = ("--set", "providers=mine:token=hush")
    if by == "environment":
        monkeypatch.setenv("MESHWRIGHT_PROVIDERS", "mine:token=hush")
        given = ()
    status, text, message = unit("serve", "--", *given)
    assert (status, text) == (2, "")
    assert "providers" in message.lower()
    assert "set it in a file, and give the file with --config" in " ".join(message.split())
    assert "hush" not in message


def test_unit_as_json_has_its_path(unit: Unit) -> None:
    """The JSON has the unit's text and its path below /etc/systemd/system."""
    status, text, _ = unit("agent", "--json", "--", *ADS)
    result = json.loads(text)
    assert (status, result["file"]) == (0, f"/etc/systemd/system/{AGENT_UNIT}")
    assert result["unit"] == unit("agent", "--", *ADS)[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("serve", "--", "--stat", "x"), "No such option: --stat"),
        (
            ("serve", "--", "--state", "/srv/mesh"),
            "state is '/srv/mesh': must be below /var/lib, where systemd creates it for the unit",
        ),
        (("serve", "--", "--state", "/var/lib/../x"), "below /var/lib"),
        (
            ("serve", "--", "--mesh", "mesh"),
            "--mesh is 'mesh': must be an absolute path, because a unit does not have a working directory",
        ),
        (("serve", "--", "--mesh", "/home/me/mesh"), "--mesh is '/home/me/mesh': the unit cannot read /home"),
        (
            ("serve", "--", "--kubernetes"),
            "--kubernetes: the unit cannot read ~/.kube/config; give a file with",
        ),
        (
            ("serve", "--", "--kubernetes", "--kubeconfig", "/root/.kube/config"),
            "--kubeconfig is '/root/.kube/config': the unit cannot read /home",
        ),
        (("serve", "--", "--set", "quiet=1"), "--quiet is not a setting"),
        (
            ("serve", "--tproxy"),
            "--low-ports and --tproxy apply only to `meshwright unit agent`: remove them",
        ),
        (("agent",), "--ads is missing"),
        (("agent", "--", *ADS, "--run", "/var/run/x"), "below /run"),
        (
            ("agent", "--", *ADS, "--envoy", "./envoy"),
            (
                "--envoy is './envoy': must be an absolute path, because a unit does not have a working "
                "directory"
            ),
        ),
        (("agent", "--", *ADS, "wait"), "unexpected extra argument"),
        (("agent", "--", "--ads", "nope"), "--ads is 'nope': "),
        (("agent", "--", "--ads", "nope:99999"), "--ads is 'nope:99999': "),
        (("agent", "--", *ADS, "--admin", "zzz"), "--admin is 'zzz': "),
        (("agent", "--", *ADS, "--status", "5"), "--status is '5': "),
        (("intercept", "--", "--exclude-inbound-ports", "99999"), "--exclude-inbound-ports"),
        (("intercept", "--", "--include-outbound-ports", "http"), "--include-outbound-ports"),
        (("intercept", "--", "--exclude-outbound-ranges", "1.2.3.4.5"), "--exclude-outbound-ranges"),
        (("intercept", "--user", "me"), "intercept always runs as root"),
        (
            ("serve", "--program", "/root/.local/bin/meshwright"),
            "the program is '/root/.local/bin/meshwright'",
        ),
    ],
)
def test_unit_that_cannot_run_is_refused(unit: Unit, arguments: tuple[str, ...], words: str) -> None:
    """Arguments that the unit could not run with are errors when the unit is printed."""
    status, text, message = unit(*arguments)
    assert (status, text) == (2, "")
    assert words in message or words in " ".join(message.split())


def test_log_levels_of_the_options_are_the_real_ones() -> None:
    """The options list the levels themselves. They are defined before any module that logs is imported."""
    assert tuple(LogLevel) == LOG_LEVELS


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("/plain/word-1.0,x=[::]:1", "/plain/word-1.0,x=[::]:1"),
        ("", '""'),
        ("two words", '"two words"'),
        ("50%", "50%%"),
        ("$HOME", "$$HOME"),
        ('a"b\\c', '"a\\"b\\\\c"'),
        ("*", '"*"'),
        ("a;b", '"a;b"'),
    ],
)
def test_words_are_quoted_for_systemd(word: str, written: str) -> None:
    """Quoted words reach the program unchanged, whatever systemd would expand in them."""
    assert quoted(word) == written


def test_agent_that_enrols_or_renews_can_write_its_credentials(unit: Unit) -> None:
    """Only an agent that enrols or renews may write the directory of its credentials."""
    joining = ("--enrol", "control:15130", "--join-token", "/etc/meshwright/join-token")
    for answer in (joining, ("--renewal", "control:15131")):
        status, text, _ = unit("agent", "--", *ADS, *answer)
        assert status == 0
        assert "\nReadWritePaths=/etc/meshwright/credentials\n" in text
    assert "ReadWritePaths" not in unit("agent", "--", *ADS)[1]


@pytest.mark.parametrize("flag", ["--join-token", "--kubernetes-token"])
def test_token_in_the_arguments_is_refused(unit: Unit, flag: str) -> None:
    """All users can read a unit, so that it must name the token's file.

    The error does not contain the token.
    """
    status, text, message = unit(
        "agent", "--", *ADS, "--enrol", "control:15130", flag, f"0123456789ab.{'s' * 43}"
    )
    assert (status, text) == (2, "")
    assert f"{flag} is a token, but must be the path of a file" in message
    assert "sss" not in message
