"""Rules for Pods that started before the plug-in was in the runtime's list.

On a new node Pods start together with the daemon, and the runtime calls only the other plug-ins for them.
These Pods wait in their first container. The daemon therefore searches for them when the plug-in is
installed, and a few times afterwards, because a runtime reads the list a little later and a kubelet reports
addresses with a delay.
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
"""Seconds between two searches after the plug-in was installed."""

_log = structlog.get_logger("cni.late")

PodsHere = Callable[[], Awaitable[Sequence[Mapping[str, Any]]]]
"""Returns the Pods of this node; raises LookupFailed."""


async def looking(
    pods: PodsHere, answerer: Answerer, folder: Path, put_in: asyncio.Event, after: Sequence[float] = AFTER
) -> None:
    """Search at the start and after each installation of the plug-in, until cancelled.

    `folder` has the network namespaces of the runtime, for example `/run/netns`.
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
        result = await pods()
    except LookupFailed as error:
        _log.error("Pods that wait for interception rules cannot be listed", reason=str(error))
        return
    for pod in result:
        if (address := waits(pod)) and (network := await asyncio.to_thread(having, folder, address)):
            metadata = pod["metadata"]
            details = (str(metadata.get(item, "")) for item in ("namespace", "name", "uid"))
            answer = await answerer.answer(Request("ADD", "", str(network), *details))
            if answer.outcome is Outcome.SET:
                _log.info(
                    "interception rules set for a Pod that waited for the plug-in",
                    pod=f"{metadata['namespace']}/{metadata['name']}",
                )


def having(folder: Path, address: str) -> Path | None:
    """Return the file in `folder` of the network namespace with this IP address, or None."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        with contextlib.suppress(OSError, NodesNetwork):  # deleted meanwhile, or not a network of a Pod
            if within(path, lambda: _is_here(address)):
                return path
    return None


def _is_here(address: str) -> bool:
    """Return whether the present network namespace has an IP address: otherwise bind(2) fails."""
    family = socket.AF_INET6 if ip_address(address).version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as made:
        try:
            made.bind((address, 0))
        except OSError:
            return False
    return True
