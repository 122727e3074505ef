"""The bookwarehouse: accepts orders and stores them in the database."""

import asyncio

from aiohttp import web

from demo.apps import names, outcomes, wire
from demo.apps.counters import Counters
from demo.apps.settings import AppSettings


class Warehouse:
    """Warehouse with one long-lived database connection, which is opened again when it breaks."""

    def __init__(self, settings: AppSettings, counters: Counters) -> None:
        self._settings = settings
        self._counters = counters
        self._database: wire.Client | None = None
        self._lock = asyncio.Lock()
        self._stock = 0

    def application(self) -> web.Application:
        """Return the web application of the bookwarehouse."""
        application = web.Application()
        application.on_cleanup.append(self._forget)
        application.router.add_get("/", self._look)
        application.router.add_post(names.RESTOCK_BOOKS, self._restock)
        return application

    async def _look(self, request: web.Request) -> web.Response:
        return self._answer(request, 200)

    async def _restock(self, request: web.Request) -> web.Response:
        async with self._lock:
            outcome = await self._store()
        self._counters.called("mysql", outcome)
        if outcome != outcomes.OK:
            # A proxy never answers 502 for a denied call. So clients can distinguish denied calls from a
            # missing database.
            return self._answer(request, 502)
        self._stock += 1
        return self._answer(request, 200)

    def _answer(self, request: web.Request, status: int) -> web.Response:
        if status == 200:
            caller = request.headers.get(names.CALLER_HEADER, "")
            self._counters.serve(caller, request.headers.get(names.TOKEN_HEADER, ""))
        return web.json_response(
            {"identity": self._settings.name, "stock": self._stock},
            status=status,
            headers={names.IDENTITY_HEADER: self._settings.name},
        )

    async def _store(self) -> str:
        """Insert one book, on a new connection if the old one is broken; return the outcome."""
        # A kept connection may have been closed since the last order, so a failure on it is tried once more
        # on a new connection. A failure on a new connection is final.
        kept = self._database is not None
        try:
            return await self._insert()
        except outcomes.CALL_ERRORS as error:
            await self._forget()
            if not kept:
                return outcomes.of_error(error)
        try:
            return await self._insert()
        except outcomes.CALL_ERRORS as error:
            await self._forget()
            return outcomes.of_error(error)

    async def _insert(self) -> str:
        if self._settings.database is None:
            return outcomes.REFUSED
        async with asyncio.timeout(5):
            if self._database is None:
                self._database = await wire.Client.connect(*self._settings.database)
            await self._database.insert("restock")
        return outcomes.OK

    async def _forget(self, _application: web.Application | None = None) -> None:
        kept, self._database = self._database, None
        if kept is not None:
            await kept.close()
