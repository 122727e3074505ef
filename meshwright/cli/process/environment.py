"""Variables of ours in the environment that nobody reads: a slip in one is said, as it changes nothing."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import structlog

from meshwright.mesh.problems.spelling import nearest

if TYPE_CHECKING:  # the agent's program says what is unknown, and has left the command line behind
    import typer

PREFIX: Final = "MESHWRIGHT_"

_log = structlog.get_logger("cli.environment")


def unknown(environment: Collection[str], known: Iterable[str]) -> Mapping[str, str | None]:
    """Return the variables of ours that are not known, sorted, each with the one that may be meant."""
    names = sorted(known)
    bare = [name.removeprefix(PREFIX) for name in names]
    # Kubernetes tells every Pod of the Services beside it, such as one that is called meshwright.
    services = [name.removesuffix("_SERVICE_HOST") for name in environment if name.endswith("_SERVICE_HOST")]
    links = tuple(f"{service}_{what}" for service in services for what in ("SERVICE_", "PORT"))
    found: dict[str, str | None] = {}
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in names and not name.startswith(links):
            near = nearest(name.removeprefix(PREFIX), bare)
            found[name] = None if near is None else PREFIX + near
    return found


def say_unknown(environment: Collection[str], known: Iterable[str]) -> None:
    """Log a warning for each."""
    for name, meant in unknown(environment, known).items():
        said = {} if meant is None else {"did_you_mean": meant}
        _log.warning("unknown environment variable is ignored", variable=name, **said)


def of_commands(command: Any) -> Iterator[str]:  # noqa: ANN401 - Typer's own, which it does not export
    """Yield the variables that a command and those below it read."""
    for each in command.params:
        yield from [each.envvar] if isinstance(each.envvar, str) else each.envvar or ()
    for below in getattr(command, "commands", {}).values():
        yield from of_commands(below)


def of_program(context: "typer.Context") -> frozenset[str]:
    """Return the variables that commands of the program read; `context` is that of any of them."""
    return frozenset(of_commands(context.find_root().command))
