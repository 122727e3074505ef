"""Warnings about unknown MESHWRIGHT_ variables, because a misspelt variable has no effect."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import structlog

from meshwright.mesh.problems.spelling import nearest

if TYPE_CHECKING:  # the agent's program uses this module without the command line's packages
    import typer

PREFIX: Final = "MESHWRIGHT_"

_log = structlog.get_logger("cli.environment")


def unknown(environment: Collection[str], known: Iterable[str]) -> Mapping[str, str | None]:
    """Return the unknown MESHWRIGHT_ variables, sorted, each with the most similar known one, or None."""
    names = sorted(known)
    bare = [name.removeprefix(PREFIX) for name in names]
    # Kubernetes sets variables for Services in every Pod; a Service named meshwright sets MESHWRIGHT_PORT.
    services = [name.removesuffix("_SERVICE_HOST") for name in environment if name.endswith("_SERVICE_HOST")]
    links = tuple(f"{service}_{what}" for service in services for what in ("SERVICE_", "PORT"))
    result: dict[str, str | None] = {}
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in names and not name.startswith(links):
            near = nearest(name.removeprefix(PREFIX), bare)
            result[name] = None if near is None else PREFIX + near
    return result


def warn_of_unknown(environment: Collection[str], known: Iterable[str]) -> None:
    """Log a warning for each unknown variable."""
    for name, meant in unknown(environment, known).items():
        fields = {} if meant is None else {"did_you_mean": meant}
        _log.warning("unknown environment variable is ignored", variable=name, **fields)


def of_commands(command: Any) -> Iterator[str]:  # noqa: ANN401 - Typer's own, which it does not export
    """Yield the environment variables read by a command and by its subcommands."""
    for param in command.params:
        yield from [param.envvar] if isinstance(param.envvar, str) else param.envvar or ()
    for below in getattr(command, "commands", {}).values():
        yield from of_commands(below)


def of_program(context: "typer.Context") -> frozenset[str]:
    """Return the variables of all commands of the program; `context` belongs to any of the commands."""
    return frozenset(of_commands(context.find_root().command))
