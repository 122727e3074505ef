"""Standing in a pod's network: a thread that does so ends there, and programs that it runs begin there."""

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

_CLONE_NEWNET: Final = 0x40000000
_OWN: Final = Path("/proc/self/ns/net")
_libc = ctypes.CDLL(None, use_errno=True)
_Result = TypeVar("_Result")


class NoSuchNetwork(OSError):
    """A network is not there, or not seen from here; the message is one sentence."""


class NodesNetwork(Exception):
    """It is the network of the node itself, which nobody stands in by way of a pod."""


def seen(path: str) -> Path:
    """Return where a network is that the runtime names; raise NoSuchNetwork.

    Runtimes say /var/run, which on hosts is /run and need not be here.
    """
    for each in (Path(path), Path(path.removeprefix("/var"))):
        if each.exists():
            return each
    raise NoSuchNetwork(
        f"{path} is not there; as long as its pod is, the folder must be mounted with HostToContainer"
    )


def within(network: Path, work: Callable[[], _Result]) -> _Result:
    """Call a function in a thread of its own that stands in a network.

    Raises NodesNetwork where that is the node's, NoSuchNetwork where it has gone, and what the work raises.
    """

    def there() -> _Result:
        try:
            with network.open("rb") as opened:
                about, own = os.fstat(opened.fileno()), _OWN.stat()
                if (about.st_dev, about.st_ino) == (own.st_dev, own.st_ino):
                    raise NodesNetwork(str(network))
                if _libc.setns(opened.fileno(), _CLONE_NEWNET) != 0:
                    number = ctypes.get_errno()
                    raise NoSuchNetwork(number, f"cannot be entered: {os.strerror(number)}", str(network))
        except FileNotFoundError as error:
            raise NoSuchNetwork(f"{network} has gone") from error
        return work()

    with ThreadPoolExecutor(1, "network") as executor:
        return executor.submit(there).result()
