"""Counter of lookups, iterations and hashes, as a measure of the cost of a change."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from xds.protocol.resources import resources, versions
from xds.protocol.resources.layers import Layers


@dataclass
class LookupCount:
    """Number of lookups so far."""

    count: int = 0


@contextmanager
def counted_looks() -> Iterator[LookupCount]:
    """Count lookups and iterations in mappings of resources, versions and names, and the hashes."""
    looks = LookupCount()

    def counting(function: Callable[..., object]) -> Callable[..., object]:
        def counted(*args: object) -> object:
            looks.count += 1
            return function(*args)

        return counted

    versions.digest_of.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("get", "__contains__", "__iter__", "keys", "values", "items"):
            patch.setattr(Layers, name, counting(getattr(Layers, name)))
        hashed = counting(versions.digest_of)
        for module in (resources, versions):
            patch.setattr(module, "digest_of", hashed)
        yield looks
