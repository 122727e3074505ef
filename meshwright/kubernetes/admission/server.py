"""The webhook as an HTTP application: one path, reviews of a bounded size, answers in time."""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Final

from aiohttp import web

from meshwright.kubernetes.admission.configuration import SECONDS
from meshwright.kubernetes.admission.judge import Judge
from meshwright.kubernetes.admission.place import PATH
from meshwright.kubernetes.admission.review import BadReviewError, answered, parse_review

LARGEST: Final = 8 * 1024 * 1024
"""Maximum bytes of a review: an object and its previous form, each at most 3 MiB in an API server."""

SPARE_SECONDS: Final = 1.0
"""Seconds of the API server's timeout that are reserved for the transmission in both directions."""

_LEAST_SECONDS: Final = 0.5
_LARGE: Final = 64 * 1024
_TIMEOUT: Final = re.compile(r"([0-9]{1,3})s")

Told = Callable[[str], None]
"""Callback with the outcome of each review: allowed, warned, refused or unchecked."""


def application(judge: Judge, record_verdict: Told = lambda _: None) -> web.Application:
    """Return the application, which answers every client and changes nothing.

    `record_verdict` is called with the outcome of each review.
    """
    app = web.Application(client_max_size=LARGEST)

    async def review(request: web.Request) -> web.Response:
        try:
            question = parse_review(await json_of(request))
        except BadReviewError as error:
            return web.Response(status=400, text=f"{error}\n")
        verdict = await judge.judge(question, patience(request.query.get("timeout", "")))
        record_verdict(_became(verdict.refused, verdict.warnings, looked=verdict.looked))
        return web.json_response(answered(question.uid, refused=verdict.refused, warnings=verdict.warnings))

    app.router.add_post(PATH, review)
    return app


def patience(requested: str, most: int = SECONDS) -> float:
    """Return the seconds for a review, from the `timeout` in an API server's query, for example `5s`.

    `most` is the timeout in the webhook's registration, and the default. SPARE_SECONDS are subtracted; the
    result is at least half a second.
    """
    match = _TIMEOUT.fullmatch(requested)
    seconds = float(match[1]) if match else float(most)
    return max(_LEAST_SECONDS, min(seconds, float(most)) - SPARE_SECONDS)


async def json_of(request: web.Request) -> object:
    """Return the JSON in the body of a review request; raise BadReviewError for any other content."""
    body = await request.read()
    try:
        return await asyncio.to_thread(json.loads, body) if len(body) > _LARGE else json.loads(body)
    except (ValueError, RecursionError):
        raise BadReviewError("the request body is not JSON") from None


def _became(refused: str, warnings: tuple[str, ...], *, looked: bool) -> str:
    if refused:
        return "refused"
    if not looked:
        return "unchecked"
    return "warned" if warnings else "allowed"
