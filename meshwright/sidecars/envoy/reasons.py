"""Envoy's words for what the moment forbids: sockets that cannot be made, bound or set up (1.36 to 1.40).

Envoy says what the system said of a socket, in the C library's words. Whatever is not among them here is
taken for content. One that has no descriptor left says nothing: it dies.
"""

import re
from typing import Final

from meshwright.sidecars.contract.reasons import Reason

_SOCKET: Final = re.compile(
    r"cannot bind '[^']*': |Setting socket options failed|cannot listen|socket\(2\) failed"
)

_SYSTEM: Final = {
    "Address already in use": Reason.ADDRESS_IN_USE,
    "Cannot assign requested address": Reason.ADDRESS_MISSING,
    "Address family not supported": Reason.ADDRESS_MISSING,
    "Permission denied": Reason.PERMISSION,
    "Operation not permitted": Reason.PERMISSION,
    "Setting socket options failed": Reason.PERMISSION,
    "Too many open files": Reason.LIMIT,
    "No buffer space available": Reason.LIMIT,
    "Cannot allocate memory": Reason.LIMIT,
}
"""What the words hold, and what that is; an option is set up in vain where a capability is missing."""


def reason(said: str) -> Reason:
    """Return why Envoy refuses something, by its words."""
    if _SOCKET.search(said) is None:
        return Reason.CONTENT
    return next((found for words, found in _SYSTEM.items() if words in said), Reason.CONTENT)
