"""Sending as another user: netfilter tells by a socket's user whose traffic is left alone. For root alone."""

import ctypes
import os
from typing import Final

_VERSION: Final = 0x20080522
"""_LINUX_CAPABILITY_VERSION_3."""


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapabilitySets(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def send_as(user: int) -> None:
    """Make this thread's sockets that user's, and those of threads that it starts; raise OSError.

    setfsuid(2) takes root's rights to files away with it, so that they are taken up again: our own modules,
    and the credentials, may be where the other user has no way to.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.setfsuid(user)
    header, sets = _Header(_VERSION, 0), (_CapabilitySets * 2)()
    _require(libc.capget(ctypes.byref(header), sets))
    for each in sets:
        each.effective = each.permitted
    _require(libc.capset(ctypes.byref(header), sets))


def _require(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
