"""Whom manifests would concern: tried one at a time, with nothing applied."""

import asyncio
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from admin.pages.jsonable import Document
from admin.pages.trial import Asked, Read, TooLong, tried
from admin.reading import ViewReading

BYTES: Final = 256 * 1024
ELSEWHERE: Final = "a page of another site asks: that is not answered"


class NotTried(Exception):
    """Manifests were not tried: the sentence says why, `status` is how HTTP does."""

    def __init__(self, sentence: str, status: HTTPStatus) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(slots=True)
class Trying:
    """Tries manifests on a second copy of the mesh."""

    reading: ViewReading
    read: Read
    _one: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def tried(self, manifests: str) -> Document:
        """Return what they would come to; raises NotTried."""
        if len(manifests.encode(errors="replace")) > BYTES:
            raise NotTried(f"the manifests have more than {BYTES} bytes", HTTPStatus.BAD_REQUEST)
        view = self.reading.view()
        if view is None:
            raise NotTried("nothing has been read yet", HTTPStatus.SERVICE_UNAVAILABLE)
        if self._one.locked():
            sentence = "something is being tried already: try again in a moment"
            raise NotTried(sentence, HTTPStatus.SERVICE_UNAVAILABLE)
        async with self._one:
            asked = Asked(view.settings, view.known(), manifests, self.read)
            try:
                return await asyncio.to_thread(tried, asked)
            except TooLong:
                sentence = "it takes too long; ask `meshwright diff`"
                raise NotTried(sentence, HTTPStatus.SERVICE_UNAVAILABLE) from None
