"""`meshwright unit`: a systemd unit for this machine, from the command line of the program."""

import enum
import os
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

from meshwright.cli import units
from meshwright.cli.errors import CommandFailed
from meshwright.cli.options import AsJson, require_file
from meshwright.cli.printing.responses import print_json
from meshwright.cli.process.agent_settings import agent_settings
from meshwright.cli.process.standard_streams import print_text

_FOLDER: Final = PurePosixPath("/etc/systemd/system")
_LOW: Final = 1024
_ELSEWHERE: Final = "move it, for example below /etc/meshwright"


class UnitKind(enum.StrEnum):
    """A Meshwright program for which `meshwright unit` makes a systemd unit."""

    SERVE = "serve"
    AGENT = "agent"
    INTERCEPT = "intercept"


_NAMES: Final = {
    UnitKind.SERVE: units.SERVER_UNIT,
    UnitKind.AGENT: units.AGENT_UNIT,
    UnitKind.INTERCEPT: units.INTERCEPT_UNIT,
}
_DEFAULTS: Final = {
    UnitKind.SERVE: {"mesh": "/etc/meshwright/mesh", "state": "/var/lib/meshwright"},
    UnitKind.AGENT: {"credentials": "/etc/meshwright/credentials"},
    UnitKind.INTERCEPT: {},
}
"""Folders that a unit uses if no option names others."""


def unit(
    context: typer.Context,
    which: Annotated[UnitKind, typer.Argument(help="Program that the unit runs.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="-- ARGUMENTS", help="Arguments of the program, after --.")
    ] = None,
    program: Annotated[
        str | None, typer.Option(help="Absolute path of the `meshwright` program.", show_default="this one")
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            help="User that runs the program.", show_default="meshwright; for agent: meshwright-proxy"
        ),
    ] = None,
    low_ports: Annotated[
        bool, typer.Option("--low-ports", help="For agent: allow Envoy to listen on ports below 1024.")
    ] = False,
    tproxy: Annotated[
        bool, typer.Option("--tproxy", help="For agent: allow `meshwright intercept --capture tproxy`.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    r"""Print a systemd unit that runs the server, the agent or the interception.

    The arguments after -- are checked as if you ran the program with them. For
    example:

      meshwright unit agent -- --ads control.example:15128 \
          > /etc/systemd/system/meshwright-agent.service

    Environment variables MESHWRIGHT_... that are set now are written into the
    unit.
    """
    if which is UnitKind.INTERCEPT and user is not None:
        raise CommandFailed(
            "intercept always runs as root, because only root can set iptables rules: remove --user"
        )
    if which is not UnitKind.AGENT and (low_ports or tproxy):
        raise CommandFailed("--low-ports and --tproxy apply only to `meshwright unit agent`: remove them")
    command = program or f"{sysconfig.get_path('scripts')}/meshwright"
    _require_seen("the program", command, "install it below /opt or /usr, or name another by --program")
    typed_command = _TypedCommand(context.find_root().command, which, tuple(arguments or ()))
    answer = units.Command(command, (which.value, *typed_command.arguments), typed_command.variables)
    match which:
        case UnitKind.SERVE:
            text = _server(typed_command, answer, user or "meshwright")
        case UnitKind.AGENT:
            text = _agent(
                typed_command, answer, user or "meshwright-proxy", low_ports=low_ports, tproxy=tproxy
            )
        case UnitKind.INTERCEPT:
            text = _intercept(typed_command, answer)
    if as_json:
        print_json({"file": str(_FOLDER / _NAMES[which]), "unit": text})
    else:
        print_text(text)


class _TypedCommand:
    """A parsed command line: `arguments` with defaults for the unit, and the options.

    `values` are the command's parsed options; the program ends where the command would refuse to run.
    `variables` are the environment variables of the command.
    """

    # Typer does not export the types of commands.
    def __init__(self, program: Any, which: UnitKind, words: tuple[str, ...]) -> None:  # noqa: ANN401
        from meshwright.cli.process.environment import of_commands

        command = program.commands[which.value]
        known = frozenset(of_commands(command))
        if which is UnitKind.SERVE:
            from meshwright.controller.settings.settings import variables

            known |= variables()
        self.variables: Mapping[str, str] = {n: os.environ[n] for n in sorted(known) if n in os.environ}
        # Parsed twice: first to find the missing folders, then with these folders added.
        first = self._parsed(command, which, words)
        lacking: Mapping[str, str] = {
            name: folder
            for name, folder in _DEFAULTS[which].items()
            if first[name] is None and f"MESHWRIGHT_{name.upper()}" not in self.variables
        }
        if which is UnitKind.SERVE:
            lacking = _unsaid(lacking, first)
        self.arguments = (*(word for n, folder in lacking.items() for word in (f"--{n}", folder)), *words)
        self.values: Mapping[str, Any] = self._parsed(command, which, self.arguments)
        for name, value in self.values.items():
            if isinstance(value, Path):
                flag = f"--{name.replace('_', '-')}"
                require_file(flag, value)
                _require_seen(flag, str(value), _ELSEWHERE)

    @staticmethod
    def _parsed(command: Any, which: UnitKind, words: tuple[str, ...]) -> Mapping[str, Any]:  # noqa: ANN401 - as above
        # Without subcommands such as `agent wait`, which are no programs for a unit.
        alone = TyperCommand(which.value, params=command.params)
        return dict(alone.make_context(f"meshwright {which.value}", list(words)).params)


def _unsaid(lacking: Mapping[str, str], first: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the default folders that the settings neither name nor make unnecessary."""
    from meshwright.cli.commands.serve import named
    from meshwright.controller.errors import SettingsError
    from meshwright.controller.settings.settings import Settings, load

    set_one_by_one = named(first["setting"] or ())
    if first["config"] is not None or "config" in set_one_by_one:  # the file has these folders
        return {}
    lacking = {name: folder for name, folder in lacking.items() if name not in set_one_by_one}
    fields = {name: value for name, value in first.items() if name in Settings.model_fields}
    state = {"state": lacking["state"]} if "state" in lacking else {}
    try:
        reads = load({**fields, **state, **set_one_by_one}, nothing_to_read=True).sources
    except SettingsError:
        return lacking  # the check of all settings reports this error
    return {name: folder for name, folder in lacking.items() if name != "mesh" or not reads}


def _require_seen(name: str, path: str, otherwise: str) -> None:
    """Raise CommandFailed unless a systemd unit can read the path: absolute, and not in hidden folders."""
    if not path.startswith("/"):
        raise CommandFailed(
            f"{name} is {path!r}: must be an absolute path, because a unit does not have a working directory"
        )
    if units.hidden(PurePosixPath(path)):
        raise CommandFailed(f"{name} is {path!r}: the unit cannot read /home, /root and /tmp; {otherwise}")


def _below(name: str, path: Path, folder: str) -> PurePosixPath:
    pure_posix_path = PurePosixPath(path)
    if ".." in pure_posix_path.parts or PurePosixPath(folder) not in pure_posix_path.parents:
        raise CommandFailed(
            f"{name} is {str(path)!r}: must be below {folder}, where systemd creates it for the unit"
        )
    return pure_posix_path


def _server(typed_command: _TypedCommand, command_line: units.Command, user: str) -> str:
    from meshwright.cli.commands.serve import named
    from meshwright.controller.errors import SettingsError
    from meshwright.controller.settings.settings import Settings, load

    flags = {name: value for name, value in typed_command.values.items() if name in Settings.model_fields}
    set_one_by_one = named(typed_command.values["setting"] or ())
    for name, field in Settings.model_fields.items():
        variable = f"MESHWRIGHT_{name.upper()}"
        # Settings without repr can contain secrets, and /etc/systemd/system is readable by all users.
        if not field.repr and (name in set_one_by_one or variable in typed_command.variables):
            said = f"--set {name}=" if name in set_one_by_one else variable
            raise CommandFailed(
                f"{said} may contain secrets, and all users can read a unit: set it in a file, and give the "
                "file with --config"
            )
    try:
        settings = load({**flags, **set_one_by_one})
    except SettingsError as error:
        raise CommandFailed(error) from error
    for name, path in (("mesh", settings.mesh), ("state", settings.state)):
        if path is not None:
            _require_seen(name, str(path), _ELSEWHERE)
    if settings.kubernetes:
        if settings.kubeconfig is None:
            raise CommandFailed(
                "--kubernetes: the unit cannot read ~/.kube/config; give a file with --kubeconfig"
            )
        _require_seen("kubeconfig", str(settings.kubeconfig), _ELSEWHERE)
    addresses = (settings.ads_address, settings.http_address, settings.debug_address)
    ports = (host_port.port for host_port in (*addresses, *settings.driver_addresses.values()))
    return units.server_unit(
        units.Server(
            command_line,
            user,
            _below("state", settings.state, "/var/lib"),
            settings.shutdown_delay_seconds + settings.shutdown_spread_seconds + settings.drain_seconds,
            settings.heartbeat_seconds,
            low_ports=any(0 < port < _LOW for port in ports),
            kubeconfig=PurePosixPath(settings.kubeconfig) if settings.kubeconfig is not None else None,
        )
    )


def _agent(
    typed_command: _TypedCommand, command_line: units.Command, user: str, *, low_ports: bool, tproxy: bool
) -> str:
    values = typed_command.values
    if "/" in values["envoy"]:
        _require_seen("--envoy", values["envoy"], "install it below /opt or /usr")
    if values["ads"] is None:
        raise CommandFailed(
            "--ads is missing: add `--ads HOST:PORT` with the control plane's address after --"
        )
    agent_settings(values)
    return units.agent_unit(
        units.Agent(
            command_line,
            user,
            _below("--run", values["run_directory"], "/run"),
            tuple(_written(values)),
            max(values["termination_least_seconds"], values["termination_most_seconds"]),
            low_ports=low_ports,
            tproxy=tproxy,
        )
    )


def _intercept(typed_command: _TypedCommand, command_line: units.Command) -> str:
    from meshwright.agent.interception.settings import InterceptionError
    from meshwright.cli.commands.intercept import wanted_of

    try:
        wanted_of(typed_command.values)
    except InterceptionError as error:
        raise CommandFailed(error) from error
    return units.intercept_unit(command_line)


def _written(values: Mapping[str, Any]) -> Iterator[PurePosixPath]:
    if values["enrol"] is not None or values["renewal"] is not None:
        yield PurePosixPath(values["credentials"])
    if values["hosts_file"] is not None:
        yield PurePosixPath(values["hosts_file"])
