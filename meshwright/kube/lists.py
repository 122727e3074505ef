"""Lists of objects, page by page, as they arrive."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

from meshwright.kube.call import Call
from meshwright.kube.errors import Nonsense
from meshwright.kube.pages import Page
from meshwright.kube.transport import Transport
from meshwright.kube.turns import Turn


class Objects:
    """The objects of a list of any number of pages. Other tasks get turns during the list.

    `rest` has the other fields of the last page, for example `metadata`.
    """

    def __init__(self, transport: Transport, call: Call) -> None:
        self._transport = transport
        self._call = call
        self.rest: dict[str, Any] = {}

    @property
    def metadata(self) -> dict[str, Any]:
        """Return the metadata of the list, for example its resourceVersion, or an empty mapping."""
        result = self.rest.get("metadata")
        return result if isinstance(result, dict) else {}

    async def stream_all(self) -> AsyncGenerator[Any, None]:
        """Yield the objects of all pages; raise KubeError."""
        turn, call = Turn(), self._call
        while True:
            page = Page()
            async with self._transport.parts(call) as parts:
                async for part in parts:
                    for item in page.items(part):
                        yield item
                        await turn.over()
            for item in page.end():
                yield item
            self.rest = page.rest
            following = self.metadata.get("continue")
            if not following:
                return
            if str(following) == call.params.get("continue"):
                raise Nonsense(f"the list of {call.object_text} continues with the same page again")
            call = replace(call, params={**call.params, "continue": str(following)})
