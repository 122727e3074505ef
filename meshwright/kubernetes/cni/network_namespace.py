"""Work in a Pod's network: a thread in the network namespace, and the programs started by the thread."""

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
    """A network is missing or not visible in this container; the message is one sentence."""


class NodesNetwork(Exception):
    """The network is the node's own, which must not be changed for a Pod."""


def seen(path: str) -> Path:
    """Return the path of a network by the runtime's name for it. Raises NoSuchNetwork.

    Runtimes name `/var/run/...`, which is `/run/...` on hosts, and may be missing in this container.
    """
    for pure_posix_path in (Path(path), Path(path.removeprefix("/var"))):
        if pure_posix_path.exists():
            return pure_posix_path
    raise NoSuchNetwork(
        f"{path} does not exist; if the pod still runs, mount the folder with mountPropagation: "
        "HostToContainer"
    )


def within(network: Path, work: Callable[[], _Result]) -> _Result:
    """Call `work` in a new thread inside a network.

    The thread ends afterwards, so that other work never runs inside the network. Raises NodesNetwork for the
    node's network, NoSuchNetwork for a deleted one, and the errors of `work`.
    """

    def there() -> _Result:
        try:
            with network.open("rb") as opened:
                about, own = os.fstat(opened.fileno()), _OWN.stat()
                if (about.st_dev, about.st_ino) == (own.st_dev, own.st_ino):
                    raise NodesNetwork(str(network))
                if _libc.setns(opened.fileno(), _CLONE_NEWNET) != 0:
                    number = ctypes.get_errno()
                    raise NoSuchNetwork(
                        number,
                        f"the network namespace cannot be entered: {os.strerror(number)}",
                        str(network),
                    )
        except FileNotFoundError as error:
            raise NoSuchNetwork(f"{network} does not exist any more") from error
        return work()

    with ThreadPoolExecutor(1, "network") as executor:
        return executor.submit(there).result()
