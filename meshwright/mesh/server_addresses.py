"""Addresses of several servers in one text, for example `a.example:15128,[fd00::1]:15128`."""

import re
from ipaddress import ip_address
from typing import Final

from meshwright.mesh.host_port import HostPort

_NAME: Final = re.compile(r"[\w.-]+")
_NUMBERS: Final = re.compile(r"[\d.]+")


def server_addresses(text: str, example: int) -> tuple[HostPort, ...]:
    """Parse the addresses of one or more servers, separated by commas, in the given order.

    Hosts are names and IP addresses, also mixed. Raises ValueError for an entry that is not HOST:PORT, with
    `example` as the port of an example, and for an address that is given twice.
    """
    result: dict[tuple[str, int], HostPort] = {}
    for entry in text.split(","):
        address = _address(entry.strip(), text, example)
        key = _canonical(address.host), address.port
        if key in result:
            raise ValueError(f"has {result[key]} twice: give each server once")
        result[key] = address
    return tuple(result.values())


def joined(addresses: tuple[HostPort, ...]) -> str:
    """Return the addresses in the form of `server_addresses`."""
    return ",".join(map(str, addresses))


def is_ip_address(host: str) -> bool:
    """Return whether a host is an IP address, and not a name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _address(entry: str, text: str, example: int) -> HostPort:
    try:
        address = HostPort.parse(entry, example)
    except ValueError:
        raise _malformed(entry, text, example) from None
    if not address.port or not _is_host(address.host):
        raise _malformed(entry, text, example)
    return address


def _malformed(entry: str, text: str, example: int) -> ValueError:
    must = f"must be HOST:PORT, for example 127.0.0.1:{example} or [::1]:{example}"
    several = f"several servers are separated by commas: a.example:{example},b.example:{example}"
    named = f"entry {entry!r} " if "," in text else ""
    return ValueError(f"{named}{must}; {several}")


def _is_host(host: str) -> bool:
    if ":" in host or _NUMBERS.fullmatch(host):
        return is_ip_address(host)
    return _NAME.fullmatch(host) is not None


def _canonical(host: str) -> str:
    return str(ip_address(host)) if is_ip_address(host) else host.lower().removesuffix(".")
