"""Sockets as another user, because netfilter exempts traffic by the socket's user. Only for root."""

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
    """Open the sockets of this thread, and of threads started later, as `user`; raise OSError.

    Files are still opened with root's rights, because `user` may not have access to our modules and the
    credentials.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.setfsuid(user)
    header, sets = _Header(_VERSION, 0), (_CapabilitySets * 2)()
    # setfsuid(2) drops root's file capabilities from the effective set; they are taken back here.
    _require(libc.capget(ctypes.byref(header), sets))
    for capability_sets in sets:
        capability_sets.effective = capability_sets.permitted
    _require(libc.capset(ctypes.byref(header), sets))


def _require(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
