"""`meshwright serve`: settings, logs, the server, and how it ended."""

import asyncio
from collections.abc import Mapping

from controller import app
from controller.errors import StartupError
from controller.process import logs
from controller.process.memory import returning
from controller.process.tasks import TaskEnded
from controller.settings import Settings, load


def run(flags: Mapping[str, object]) -> str | None:
    """Run the server until it is told to stop; return what went wrong in one sentence, or None."""
    try:
        settings = load(flags)
        logs.configure(settings.log_level, settings.log_format)
        returning()
        asyncio.run(_serve(settings))
    except (StartupError, TaskEnded) as error:
        return str(error)
    except KeyboardInterrupt:  # before the server listened to signals
        return "interrupted before it served"
    return None


async def _serve(settings: Settings) -> None:
    stop = asyncio.Event()
    app.stop_on_signals(stop)
    await app.run(settings, stop)
