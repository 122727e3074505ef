"""Tests of unknown MESHWRIGHT variables, which are reported with a suggestion."""

from typing import Annotated

import typer
from typer.testing import CliRunner

from meshwright.cli.main import app
from meshwright.cli.process.environment import of_commands, of_program, unknown
from meshwright.controller.settings.settings import Settings, variables

OF_PROGRAM = frozenset(of_commands(typer.main.get_command(app)))


def test_misspelt_variable_has_a_suggestion() -> None:
    """Variables of settings and options are checked, and those with another prefix ignored."""
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


def test_service_links_of_kubernetes_are_not_reported() -> None:
    """Kubernetes sets such variables for Services whose names begin with "meshwright".

    Other ports are reported.
    """
    links = {
        f"{service}_{name}": ""
        for service in ("MESHWRIGHT", "MESHWRIGHT_ADS")
        for name in ("SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_GRPC", "PORT", "PORT_15128_TCP_ADDR")
    }
    assert unknown({**links, "MESHWRIGHT_HTTP_PORT": "1"}, variables()).keys() == {"MESHWRIGHT_HTTP_PORT"}


def test_variables_of_all_settings_and_options_are_known() -> None:
    """The variables for images and drivers are known too."""
    known = variables() | OF_PROGRAM
    assert {f"MESHWRIGHT_{name.upper()}" for name in Settings.model_fields} <= known
    assert {"MESHWRIGHT_ADS", "MESHWRIGHT_ENVOY", "MESHWRIGHT_RUN", "MESHWRIGHT_SIDECAR_CLASS"} <= known


def test_command_knows_the_variables_of_all_groups() -> None:
    """The variables of its own group, of other groups and of a group's options are known."""
    program, here, there = (typer.Typer() for _ in range(3))
    result: list[frozenset[str]] = []

    @here.command()
    def run(context: typer.Context, own: Annotated[str, typer.Option(envvar="OWN")] = "") -> None:
        result.append(of_program(context))

    @there.callback()
    def other(option: Annotated[str, typer.Option(envvar=["OTHER", "OLD"])] = "") -> None:
        pass

    @there.command()
    def also(option: Annotated[str, typer.Option(envvar="ALSO")] = "") -> None:
        pass

    program.add_typer(here, name="here")
    program.add_typer(there, name="there")
    ended = CliRunner().invoke(program, ["here", "run"])
    assert (ended.exit_code, result) == (0, [frozenset({"OWN", "OTHER", "OLD", "ALSO"})])
