"""Quantities of the Kubernetes API: parsed, and written in their canonical form (`resource.Quantity`)."""

import re
from decimal import Decimal
from typing import Final

_AMOUNT: Final = re.compile(
    r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE]([+-]?[0-9]{1,3})|([numkMGTPE]|[KMGTPE]i))?"
)
_DECIMAL: Final = {item: Decimal(1000) ** (at - 3) for at, item in enumerate(("n", "u", "m", "", *"kMGTPE"))}
_BINARY: Final = {f"{item}i": Decimal(1024) ** (at + 1) for at, item in enumerate("KMGTPE")}
_SUFFIXES: Final = {**_DECIMAL, **_BINARY}


def read_quantity(text: str) -> Decimal | None:
    """Return a Kubernetes quantity as a number (1 for "1000m"); None if invalid."""
    if (match := _AMOUNT.fullmatch(text)) is None:
        return None
    plain = Decimal(match[1])
    return plain.scaleb(int(match[2])) if match[2] else plain * _SUFFIXES[match[3] or ""]


def amount(value: object) -> object:
    """Return a Kubernetes quantity as a number, for comparisons; an invalid one is returned unchanged."""
    number = read_quantity(str(value))
    return value if number is None else number


def written(amount: Decimal, like: object) -> str:
    """Return a number as a quantity, in powers of 1024 if `like` is and the number is at least 1024."""
    is_binary = str(like).endswith("i") and abs(amount) >= 1024
    suffixes = {"": Decimal(1), **_BINARY} if is_binary else _DECIMAL
    # The canonical form has the largest suffix without a fraction: 1 instead of 1000m.
    for suffix, size in reversed(suffixes.items()):
        if amount % size == 0:
            return f"{amount / size:f}{suffix}"
    return f"{amount:f}"
