"""Checks of `meshwright check` for a server, running or not."""

from collections.abc import Iterator
from typing import Final

from meshwright.cli.checking.judgements.check import Check
from meshwright.cli.checking.judgements.environment import ports
from meshwright.cli.checking.server import running_server as running
from meshwright.cli.checking.server import stopped_server as stopped
from meshwright.cli.checking.server.paths import ServerPaths, all_ports, directory
from meshwright.cli.errors import CommandFailed, ServerNotRunning, UnexpectedResponse

_SILENT: Final = (
    "see the server's log; if the socket belongs to another user, repeat the command as this user or as root"
)


def checks(paths: ServerPaths) -> Iterator[Check]:
    """Check the server of a state directory; `paths` is used only if the server does not run."""
    try:
        # A running server reports its own settings, which may differ from this command's options.
        server_paths = running.read_paths(paths.state)
    except ServerNotRunning as error:
        yield from stopped.checks(paths, str(error))
    except CommandFailed as error:
        yield directory(paths)
        yield Check.failed(
            "server", str(error), error.do if isinstance(error, UnexpectedResponse) else _SILENT
        )
        yield from all_ports(paths, lambda port: ports.ours(port, running.pids(paths.state)))
    else:
        yield from running.checks(server_paths)
