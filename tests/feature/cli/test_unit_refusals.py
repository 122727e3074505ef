"""Tests that `meshwright unit` refuses options with the messages of the program that the unit would start."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tools.forked_cli import Done
from tests.unit.cli.commands.test_unit import ADS, Unit, unit

__all__ = ["unit"]

REFUSED = [
    ("agent", ("--protocol", "grpc"), "--protocol is 'grpc': must be delta or sotw"),
    ("agent", ("--log-level", "loud"), "--log-level is 'loud': must be one of debug, info, warning, error"),
    (
        "agent",
        ("--probes", "/etc/meshwright/none.json"),
        "--probes is '/etc/meshwright/none.json': No such file or directory",
    ),
    ("agent", ("--probes", "/dev/null"), "--probes is '/dev/null': must be JSON: Expecting value"),
    (
        "agent",
        ("--enrol", "control:15130"),
        "--enrol needs exactly one of --join-token and --kubernetes-token",
    ),
    ("agent", ("--join-token", "/etc/t"), "--enrol needs exactly one of --join-token and --kubernetes-token"),
    ("agent", ("--enrol", "control", "--join-token", "/etc/t"), "--enrol is 'control': must be HOST:PORT"),
    ("agent", ("--enrol", "c:1", "--kubernetes-token", "/etc/t"), "--kubernetes-token needs --ca"),
    (
        "agent",
        ("--ca", "/etc/ca.pem"),
        "--ca requires --enrol: add --enrol and a token, or remove --ca",
    ),
    ("agent", ("--renewal", "control"), "--renewal is 'control': must be HOST:PORT"),
    ("agent", ("--admin", "zzz"), "--admin is 'zzz': must be HOST:PORT"),
    (
        "agent",
        ("--drain-seconds", "90"),
        "the old Envoy ends after 60 s, which must be later than its drain time",
    ),
    (
        "agent",
        ("--termination-least-seconds", "90"),
        "the minimum drain time (90.0 s) must not be longer than the maximum (45.0 s)",
    ),
    (
        "intercept",
        ("--no-inbound", "--no-outbound"),
        ("neither inbound nor outbound traffic is captured; to remove the interception, use --clean"),
    ),
    ("intercept", ("--uid", "-3"), "uid is -3: must be from 0 to 4294967294"),
    ("intercept", ("--inbound-port", "0"), "the inbound port is 0: must be from 1 to 65535"),
    ("intercept", ("--clean", "--check"), "--dry-run, --check, --probe and --clean exclude each other"),
    (
        "intercept",
        ("--exclude-outbound-ports", "*"),
        "--exclude-outbound-ports is '*', which excludes all traffic; to remove the interception",
    ),
]


@pytest.mark.parametrize(("which", "arguments", "words"), REFUSED)
def test_unit_refuses_invalid_options_with_the_programs_message(
    unit: Unit, run: Callable[..., Done], which: str, arguments: tuple[str, ...], words: str
) -> None:
    """A unit with these options would fail at each start, so it is not written."""
    answer = (*ADS, "--credentials", "/etc/meshwright/credentials") if which == "agent" else ()
    refused = unit(which, "--", *answer, *arguments)
    assert Done(*refused) == run(which, *answer, *arguments)
    assert refused[:2] == (2, "")
    assert refused[2].startswith(f"meshwright: {words}")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "probes must be an object with paths as keys"),
        ('{"/x": {"tcpSocket": {"port": 1}}}', "probe /x: the path must begin with /app-health/"),
        ("{", "must be JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        (
            '{"/app-health/a": {"httpGet": {"port": 1, "httpHeaders": [{"name": "a"}]}}}',
            "each entry of httpHeaders must have a name and a value",
        ),
    ],
)
def test_agent_refuses_an_invalid_probe_file(
    run: Callable[..., Done], tmp_path: Path, text: str, why: str
) -> None:
    """The agent does not start, and the message names the file and the problem."""
    file = tmp_path / "probes.json"
    file.write_text(text)
    done = run("agent", *ADS, "--credentials", "credentials", "--probes", str(file))
    assert done == Done(2, "", f"meshwright: --probes is {str(file)!r}: {why}\n")
