"""Runs the control plane as a program: settings, logs, the server, and how it ended."""

import asyncio
from collections.abc import Mapping
from functools import partial

from cli.errors import AnsweredNo, CommandFailed
from cli.signals import until_told
from controller import app
from controller.errors import StartupError
from controller.process import logs
from controller.process.handshakes import FailedHandshakes
from controller.process.memory import returning
from controller.process.tasks import TaskEnded
from controller.settings import load


def run(flags: Mapping[str, object], handshakes: FailedHandshakes) -> None:
    """Run the server until it is told to stop; raise CommandFailed where it cannot run, or not on.

    `handshakes` are those that fail meanwhile.
    """
    try:
        settings = load(flags)
        logs.configure(settings.log_level, settings.log_format)
        returning()
        asyncio.run(until_told(partial(app.run, settings, handshakes=handshakes)))
    except StartupError as error:
        raise CommandFailed(error) from error
    except TaskEnded as error:
        raise AnsweredNo(error) from error
    except KeyboardInterrupt:  # before the server listened to signals
        raise CommandFailed("interrupted before it served") from None
