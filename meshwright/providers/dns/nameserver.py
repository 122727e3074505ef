"""Address of a nameserver in the settings, and its parser."""

from dataclasses import dataclass
from typing import Final, Self

from meshwright.mesh.names import IpAddress
from meshwright.specs.values.references import parse_address

DNS_PORT: Final = 53


@dataclass(frozen=True, slots=True, order=True)
class Nameserver:
    """Address and port of a nameserver."""

    address: IpAddress
    port: int = DNS_PORT

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse an IP address with or without a port: `10.0.0.2`, `10.0.0.2:5353`, `[fd00::2]:53`."""
        if (address := parse_address(text)) is not None:
            return cls(address)
        host, colon, number = text.rpartition(":")
        host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        address = parse_address(host)
        good = colon and number.isascii() and number.isdigit() and 1 <= int(number) <= 65535
        if address is None or not good or (":" in address and not text.startswith("[")):
            raise ValueError(
                "must be IP addresses, with or without a port, for example 10.0.0.2, 10.0.0.2:53 or "
                "[fd00::2]:53"
            )
        return cls(address, int(number))

    def __str__(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return self.address if self.port == DNS_PORT else f"{host}:{self.port}"
