"""Recognition of Envoy's rejections for temporary causes.

The causes are sockets that Envoy cannot create, bind or configure.

Envoy (1.36 to 1.40) includes the system's message for the socket, in the C library's words. Any other message
counts as CONTENT. An Envoy without free descriptors exits without a message.
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
"""Reason for each system message. Setting a socket option fails if a capability is missing."""


def reason(message: str) -> Reason:
    """Return the kind of reason in Envoy's rejection message."""
    if _SOCKET.search(message) is None:
        return Reason.CONTENT
    return next((result for words, result in _SYSTEM.items() if words in message), Reason.CONTENT)
