"""`python -m meshwright.cli.agent_program`: the agent itself, after the command line has been read.

Every import of this module stays in memory beside every workload: see `meshwright.cli.process.handover`.
"""

from meshwright.cli.process.structlog_alone import import_structlog

# Must run before any import of structlog: structlog imports rich where rich is installed.
import_structlog()

import asyncio
import faulthandler
import os
import sys
from dataclasses import replace
from functools import partial

from meshwright.admin.http.log_levels import add_log_levels
from meshwright.agent import app
from meshwright.agent.envoy.lifecycle import EnvoyEnd
from meshwright.agent.errors import AgentError
from meshwright.cli.errors import CommandFailed, NegativeAnswer
from meshwright.cli.process.environment import warn_of_unknown
from meshwright.cli.process.exit_status import ending_in_words
from meshwright.cli.process.handover import AgentCommandLine, handed_over
from meshwright.cli.process.signals import run_until_signal
from meshwright.controller.process import logs
from meshwright.controller.process.levels import LogLevels
from meshwright.controller.process.service_manager import ServiceManager


def run(command_line: AgentCommandLine) -> None:
    """Run the agent until a signal stops the agent, or Envoy cannot be kept running; raise CommandFailed.

    Raises NegativeAnswer if Envoy has ended too often.
    """
    try:
        style = logs.LogFormat.JSON if command_line.as_json else logs.LogFormat.AUTO
        logs.configure(logs.LogLevel(command_line.log_level), style)
        warn_of_unknown(os.environ, command_line.variables)
        # On a terminal, people read Envoy's lines as Envoy wrote them. JSON logs need them as events.
        envoy = replace(command_line.settings.envoy, logged=logs.is_json(style, sys.stderr))
        again, pages = asyncio.Event(), partial(add_log_levels, LogLevels())
        manager = ServiceManager.from_environment(os.environ)
        if manager.listens:
            faulthandler.enable()  # a watchdog's SIGABRT then writes a traceback of the hang
        settings, heard = replace(command_line.settings, envoy=envoy), manager if manager.listens else None
        agent = partial(app.run, settings, again=again, pages=pages, manager=heard)
        ending = asyncio.run(run_until_signal(agent, again))
    except (AgentError, ValueError) as error:
        raise CommandFailed(error) from error
    if ending is EnvoyEnd.EXHAUSTED:
        raise NegativeAnswer(f"{ending.value}; Envoy's log above has the reason")


if __name__ == "__main__":
    with ending_in_words():
        run(handed_over(int(sys.argv[1])))
