"""The bookstore: sells books, and orders a new copy of each sold book from the warehouse."""

import aiohttp
from aiohttp import web

from demo.apps import names
from demo.apps.counters import Counters
from demo.apps.probe import call
from demo.apps.settings import AppSettings


class Store:
    """One version of the bookstore; a header and the body of each response have the version's name."""

    def __init__(self, settings: AppSettings, counters: Counters, session: aiohttp.ClientSession) -> None:
        self._settings = settings
        self._counters = counters
        self._session = session
        self._sold = 0

    def application(self) -> web.Application:
        """Return the web application of the bookstore."""
        application = web.Application()
        application.router.add_get(names.BOOKS_BOUGHT, self._books_bought)
        application.router.add_get(names.BUY_A_BOOK, self._buy_a_book)
        return application

    async def _books_bought(self, request: web.Request) -> web.Response:
        return self._answer(request)

    async def _buy_a_book(self, request: web.Request) -> web.Response:
        self._sold += 1
        # A sale succeeds even if the warehouse cannot be reached: the failed call is counted and so stays
        # visible.
        url = self._settings.bookwarehouse + names.RESTOCK_BOOKS
        outcome, _ = await call(self._session, "POST", url, names.client_headers(self._settings.name))
        self._counters.called("bookwarehouse", outcome)
        return self._answer(request)

    def _answer(self, request: web.Request) -> web.Response:
        caller = request.headers.get(names.CALLER_HEADER, "")
        self._counters.serve(caller, request.headers.get(names.TOKEN_HEADER, ""))
        return web.json_response(
            {"identity": self._settings.name, "sold": self._sold},
            headers={
                names.IDENTITY_HEADER: self._settings.name,
                names.POD_HEADER: self._settings.pod,
            },
        )
