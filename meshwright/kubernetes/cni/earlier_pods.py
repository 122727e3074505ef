"""Pods that came before the plug-in was in the runtime's list: their networks are found, and their rules set.

On a node that has just begun pods come as the daemon does, and no plug-in is asked for them. They wait in
their first container, so they are looked for when the plug-in was put in, and some times after it: a runtime
reads its list a little later, and a kubelet tells a pod's address when it can.
"""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

import structlog

from meshwright.kubernetes.cni.decision import waits
from meshwright.kubernetes.cni.network_namespace import NodesNetwork, within
from meshwright.kubernetes.cni.responses import Answerer, LookupFailed, Outcome, Request

AFTER: Final = (0.5, 2.0, 5.0, 15.0, 60.0, 180.0)
"""Seconds between one look and the next, once the plug-in was put in."""

_log = structlog.get_logger("cni.late")

PodsHere = Callable[[], Awaitable[Sequence[Mapping[str, Any]]]]
"""Returns the pods of this node; raises LookupFailed."""


async def looking(
    pods: PodsHere, answerer: Answerer, folder: Path, put_in: asyncio.Event, after: Sequence[float] = AFTER
) -> None:
    """Look at the beginning, and whenever the plug-in was put in, until cancelled.

    `folder` is where the runtime has the networks of pods.
    """
    while True:
        put_in.clear()
        for seconds in after:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await put_in.wait()
                    break
            await _look(pods, answerer, folder)
        await put_in.wait()


async def _look(pods: PodsHere, answerer: Answerer, folder: Path) -> None:
    try:
        found = await pods()
    except LookupFailed as error:
        _log.error("waiting pods cannot be listed", reason=str(error))
        return
    for pod in found:
        if (address := waits(pod)) and (network := await asyncio.to_thread(having, folder, address)):
            metadata = pod["metadata"]
            told = (str(metadata.get(each, "")) for each in ("namespace", "name", "uid"))
            answer = await answerer.answer(Request("ADD", "", str(network), *told))
            if answer.outcome is Outcome.SET:
                _log.info("rules set for a waiting pod", pod=f"{metadata['namespace']}/{metadata['name']}")


def having(folder: Path, address: str) -> Path | None:
    """Return which of the networks in a folder has an address; None if none has."""
    for each in sorted(folder.iterdir()) if folder.is_dir() else ():
        with contextlib.suppress(OSError, NodesNetwork):  # it has gone meanwhile, or is none
            if within(each, lambda: _is_here(address)):
                return each
    return None


def _is_here(address: str) -> bool:
    """Say whether an address is this network's: nobody may bind another one's."""
    family = socket.AF_INET6 if ip_address(address).version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as made:
        try:
            made.bind((address, 0))
        except OSError:
            return False
    return True
