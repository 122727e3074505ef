"""Values for the health of an etcd, without the libraries of its client. A pure module."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemberHealth:
    """One member: the version, bytes in use and permitted (0: unknown), and alarms; or the `error`."""

    endpoint: str
    error: str = ""
    version: str = ""
    size: int = 0
    quota: int = 0
    has_leader: bool = False
    alarms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class History:
    """The newest revision of a store, and whether the changes since the first one are kept."""

    revision: int
    is_whole: bool
