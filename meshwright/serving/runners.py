"""Runners of aiohttp applications, whose errors are logged by RequestErrors."""

from aiohttp import web

from meshwright.serving.request_errors import Log, RequestErrors


def runner(app: web.Application, log: Log, shutdown_timeout: float) -> web.AppRunner:
    """Return the runner of an application that is not started yet.

    The application's own logger is bounded in the same way, for handlers that log what failed in them.
    """
    errors = RequestErrors(log)
    app.logger = errors

    async def flush(_: web.Application) -> None:
        errors.flush()

    app.on_cleanup.append(flush)
    return web.AppRunner(app, access_log=None, logger=errors, shutdown_timeout=shutdown_timeout)
