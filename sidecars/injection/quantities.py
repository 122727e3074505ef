"""Quantities of the Kubernetes API: read, and written in its canonical form (`resource.Quantity`)."""

import re
from decimal import Decimal
from typing import Final

_AMOUNT: Final = re.compile(
    r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE]([+-]?[0-9]{1,3})|([numkMGTPE]|[KMGTPE]i))?"
)
_DECIMAL: Final = {each: Decimal(1000) ** (at - 3) for at, each in enumerate(("n", "u", "m", "", *"kMGTPE"))}
_BINARY: Final = {f"{each}i": Decimal(1024) ** (at + 1) for at, each in enumerate("KMGTPE")}
_SUFFIXES: Final = {**_DECIMAL, **_BINARY}


def amount(value: object) -> object:
    """Return a quantity as a number, that 1000m is 1; what is none comes back as it is."""
    if (found := _AMOUNT.fullmatch(str(value))) is None:
        return value
    number = Decimal(found[1])
    return number.scaleb(int(found[2])) if found[2] else number * _SUFFIXES[found[3] or ""]


def written(number: Decimal, like: object) -> str:
    """Return a number as a quantity, by powers of 1024 where `like` is, and the number is not below that."""
    is_binary = str(like).endswith("i") and abs(number) >= 1024
    suffixes = {"": Decimal(1), **_BINARY} if is_binary else _DECIMAL
    for suffix, size in reversed(suffixes.items()):
        if number % size == 0:
            return f"{number / size:f}{suffix}"
    return f"{number:f}"
