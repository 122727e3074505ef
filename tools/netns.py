"""Calls in another network namespace; sockets created there stay in this namespace for their whole life."""

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

_CLONE_NEWNET: Final = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)
_Result = TypeVar("_Result")


def within(namespace: Path, work: Callable[[], _Result], uid: int = 0) -> _Result:
    """Call `work` in a new thread inside a network namespace, with the file system user id `uid`.

    Return its result. Raises OSError if the namespace is missing, or if the process has no right to enter it.
    """

    def there() -> _Result:
        with namespace.open("rb") as opened:
            if _libc.setns(opened.fileno(), _CLONE_NEWNET) != 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), str(namespace))
        _libc.setfsuid(uid)
        return work()

    with ThreadPoolExecutor(1) as executor:
        return executor.submit(there).result()
