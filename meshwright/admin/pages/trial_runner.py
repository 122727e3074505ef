"""Runner of trials of manifests: one trial at a time, and no manifest is applied."""

import asyncio
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from aiohttp import web

from meshwright.admin.jsonable import Document
from meshwright.admin.pages.trial import Read, TooLong, TrialInput, tried
from meshwright.admin.readers import ViewReading

BYTES: Final = 256 * 1024
"""Maximum size of the manifests in bytes."""
TOO_LONG: Final = f"the manifests are longer than {BYTES} bytes: use `meshwright diff`"
ELSEWHERE: Final = "the request comes from a page of another site, which this server does not answer"
_FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data")


class TrialUnavailable(Exception):
    """Error for a trial that is not made: a sentence with the reason, and the HTTP status."""

    def __init__(self, sentence: str, status: HTTPStatus) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(slots=True)
class TrialRunner:
    """Runner of trials of manifests on a second copy of the mesh."""

    reading: ViewReading
    read: Read
    _one: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def tried(self, manifests: str) -> Document:
        """Return the changes caused by manifests, without applying them. Raises TrialUnavailable."""
        if len(manifests.encode(errors="replace")) > BYTES:
            raise TrialUnavailable(TOO_LONG, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        view = self.reading.view()
        if view is None:
            raise TrialUnavailable(
                "the server has not read its sources yet: try again in a few seconds",
                HTTPStatus.SERVICE_UNAVAILABLE,
            )
        # A trial computes a second mesh, so another one at the same time is refused.
        if self._one.locked():
            sentence = "another trial is running: try again in a few seconds"
            raise TrialUnavailable(sentence, HTTPStatus.SERVICE_UNAVAILABLE)
        async with self._one:
            asked = TrialInput(view.settings, view.known(), manifests, self.read)
            try:
                return await asyncio.to_thread(tried, asked)
            except TooLong:
                sentence = "the trial takes too long: use `meshwright diff`"
                raise TrialUnavailable(sentence, HTTPStatus.SERVICE_UNAVAILABLE) from None


async def manifests_of(request: web.Request) -> str:
    """Return the manifests of a form (the HTML standard, "form submission"). Raises web.HTTPClientError.

    A body without manifests is an error, because an empty trial would report success.
    """
    if request.content_type not in _FORMS:
        raise web.HTTPUnsupportedMediaType(reason=f"the Content-Type header must be {' or '.join(_FORMS)}")
    try:
        given = (await request.post()).get("manifests")
    except web.HTTPRequestEntityTooLarge as error:
        raise web.HTTPRequestEntityTooLarge(BYTES, reason=TOO_LONG) from error
    except (ValueError, LookupError) as error:  # invalid encoding or multipart syntax
        raise web.HTTPBadRequest(reason="the body must be a form in UTF-8") from error
    if given is None:
        raise web.HTTPBadRequest(reason="manifests is missing: send manifests=YAML")
    if not isinstance(given, str):
        raise web.HTTPBadRequest(reason="manifests must be text, not a file")
    return given
