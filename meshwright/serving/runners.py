"""Runners of aiohttp applications, whose errors are logged by RequestErrors."""

from aiohttp import web

from meshwright.serving.request_errors import Log, RequestErrors


def runner(app: web.Application, log: Log, shutdown_timeout: float) -> web.AppRunner:
    """Return the runner of an application, before its start.

    The application's own logger is bounded in the same way, for handlers that log their failures.
    """
    errors = RequestErrors(log)
    app.logger = errors

    async def flush(_: web.Application) -> None:
        errors.flush()

    # Counts of an unfinished period would otherwise be lost at the end.
    app.on_cleanup.append(flush)
    return web.AppRunner(app, access_log=None, logger=errors, shutdown_timeout=shutdown_timeout)
