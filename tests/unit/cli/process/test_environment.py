"""Variables of ours that nobody reads are named, with what may be meant."""

from typing import Annotated

import typer
from typer.testing import CliRunner

from meshwright.cli.main import app
from meshwright.cli.process.environment import of_commands, of_program, unknown
from meshwright.controller.settings.settings import Settings, variables

OF_PROGRAM = frozenset(of_commands(typer.main.get_command(app)))


def test_a_slip_in_a_variable_is_asked_about() -> None:
    """Of settings and of flags; others' variables are theirs."""
    environment = {
        "MESHWRIGHT_QUIET_SECOND": "1",
        "MESHWRIGHT_LOG_LEVEL": "info",
        "MESHWRIGHT_CREDENTAILS": "x",
        "MESHWRIGHT_ZZZ": "",
        "MESHRIGHT_STATE": "",
        "PATH": "",
    }
    assert unknown(environment, variables() | OF_PROGRAM) == {
        "MESHWRIGHT_CREDENTAILS": "MESHWRIGHT_CREDENTIALS",
        "MESHWRIGHT_QUIET_SECOND": "MESHWRIGHT_QUIET_SECONDS",
        "MESHWRIGHT_ZZZ": None,
    }


def test_what_kubernetes_says_of_services_is_no_slip() -> None:
    """Of a Service called meshwright, and of one whose name begins so; any other port is one."""
    links = {
        f"{service}_{name}": ""
        for service in ("MESHWRIGHT", "MESHWRIGHT_ADS")
        for name in ("SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_GRPC", "PORT", "PORT_15128_TCP_ADDR")
    }
    assert unknown({**links, "MESHWRIGHT_HTTP_PORT": "1"}, variables()).keys() == {"MESHWRIGHT_HTTP_PORT"}


def test_every_setting_and_every_flag_s_variable_is_known() -> None:
    """So are those that choose images and drivers."""
    known = variables() | OF_PROGRAM
    assert {f"MESHWRIGHT_{name.upper()}" for name in Settings.model_fields} <= known
    assert {"MESHWRIGHT_ADS", "MESHWRIGHT_ENVOY", "MESHWRIGHT_RUN", "MESHWRIGHT_SIDECAR_CLASS"} <= known


def test_a_command_in_a_group_knows_the_variables_of_commands_in_other_groups() -> None:
    """Those of its own, of the group beside its own, and of a group's options."""
    program, here, there = (typer.Typer() for _ in range(3))
    found: list[frozenset[str]] = []

    @here.command()
    def run(context: typer.Context, own: Annotated[str, typer.Option(envvar="OWN")] = "") -> None:
        found.append(of_program(context))

    @there.callback()
    def other(option: Annotated[str, typer.Option(envvar=["OTHER", "OLD"])] = "") -> None:
        pass

    @there.command()
    def also(option: Annotated[str, typer.Option(envvar="ALSO")] = "") -> None:
        pass

    program.add_typer(here, name="here")
    program.add_typer(there, name="there")
    ended = CliRunner().invoke(program, ["here", "run"])
    assert (ended.exit_code, found) == (0, [frozenset({"OWN", "OTHER", "OLD", "ALSO"})])
