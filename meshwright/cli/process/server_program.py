"""The control plane as a program: settings, logs, the server, and the exit status."""

import asyncio
import os
import sys
from collections.abc import Mapping
from functools import partial

from meshwright.cli.errors import CommandFailed, NegativeAnswer
from meshwright.cli.process.environment import warn_of_unknown
from meshwright.cli.process.signals import run_until_signal
from meshwright.controller import app
from meshwright.controller.errors import StartupError
from meshwright.controller.process import logs
from meshwright.controller.process.memory import returning
from meshwright.controller.process.native_lines import NativeLines
from meshwright.controller.process.service_manager import ServiceManager
from meshwright.controller.process.tasks import TaskEnded
from meshwright.controller.settings.reload import Reload
from meshwright.controller.settings.settings import load, variables


def run(flags: Mapping[str, object], native: NativeLines, known: frozenset[str]) -> None:
    """Run the server until a signal stops it; raise CommandFailed if it cannot start.

    Raises NegativeAnswer if a task of the server ends unexpectedly. `native` collects lines of native
    libraries. `known` are the environment variables of commands; any other MESHWRIGHT_ variable must be a
    setting, or is logged as unknown.
    """
    try:
        settings = load(flags)
        logs.configure(settings.log_level, settings.log_format)
        manager = ServiceManager.from_environment(os.environ)
        reload = Reload(asyncio.Event(), partial(load, flags), manager.reloading)
        if logs.is_json(settings.log_format, sys.stderr):
            native.log_all()
        warn_of_unknown(os.environ, variables() | known)
        returning()
        server = partial(app.run, settings, handshakes=native.handshakes, reload=reload, manager=manager)
        asyncio.run(run_until_signal(server, reload.requested))
    except StartupError as error:
        raise CommandFailed(error) from error
    except TaskEnded as error:
        raise NegativeAnswer(error) from error
    except KeyboardInterrupt:  # before the server handled signals
        raise CommandFailed("interrupted before the server was ready") from None
