"""Pods whose proxies have no control plane, by their agents' answers through the API server's proxy."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from meshwright.cli.checking.cluster.pods import name_of
from meshwright.cli.checking.judgements.installation import PodFinding
from meshwright.kube.api import Api
from meshwright.kube.errors import ApiError, KubeError
from meshwright.sidecars.layout import READY_PATH, STATUS_PORT

MOST: Final = 500
"""Most Pods to ask, in the order of their names."""

_AT_ONCE: Final = 16
_BUT: Final = "but: "
"""Prefix of an agent's remark about a ready proxy (`meshwright.agent.status.server`)."""


async def without(api: Api, pods: Sequence[Mapping[str, Any]]) -> tuple[PodFinding, ...]:
    """Return the Pods without control plane, with reasons; raise KubeError if asking is not permitted.

    Deleted Pods are left out. Pods without an answer are in the result.
    """
    # Each request is proxied by the API server, so only few run at once.
    turn = asyncio.Semaphore(_AT_ONCE)

    async def asked(pod: Mapping[str, Any]) -> PodFinding | None:
        async with turn:
            why = await _why(api, str(pod["metadata"]["namespace"]), str(pod["metadata"]["name"]))
        return PodFinding(name_of(pod), why) if why else None

    result = await asyncio.gather(*(asked(item) for item in sorted(pods, key=name_of)[:MOST]))
    return tuple(item for item in result if item is not None)


def remark(page: str) -> str:
    """Return the agent's remark on the readiness page of a ready proxy; empty without a remark."""
    lines = (line for line in page.splitlines() if line.startswith(_BUT))
    return next(lines, "").removeprefix(_BUT)


async def _why(api: Api, namespace: str, pod: str) -> str:
    try:
        return remark(await api.proxied(namespace, pod, STATUS_PORT, READY_PATH))
    except ApiError as error:
        # The Pod was deleted after it was listed.
        if error.is_not_found:
            return ""
        if error.is_forbidden:
            raise
        return f"unexpected answer of its agent: {error}"
    except KubeError as error:
        return f"its agent does not answer: {error}"
