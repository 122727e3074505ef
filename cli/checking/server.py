"""What `meshwright check` looks at: whichever of the two a server is, running or not."""

from collections.abc import Iterator

from checks import ports
from checks.check import Check
from cli.checking import running, stopped
from cli.checking.told import Told, all_ports, directory
from cli.errors import CommandFailed, NotRunning


def checks(told: Told) -> Iterator[Check]:
    """Look at the server of a state directory; what it would be told counts where it does not run."""
    try:
        config = running.asked(told.state, "/debug/config")
    except NotRunning as error:
        yield from stopped.checks(told, str(error))
    except CommandFailed as error:
        yield directory(told)
        do = "look at its log for what it is at; if the socket is another user's, ask as that one, or as root"
        yield Check.failed("server", str(error), do)
        yield from all_ports(told, lambda port: ports.ours(port, running.pids(told.state)))
    else:
        yield from running.checks(told.state, config)
