"""A lease: keys with the time limit of this process, and the time until which the lease is sure.

The store counts the duration from the arrival of a renewal. This process counts from the beginning of the
renewal, which is earlier. Without a renewal the lease is therefore in doubt here before the store ends the
lease.
"""

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Final, Self

from meshwright.etcd.client import Client
from meshwright.etcd.errors import EtcdError, LeaseNotFoundError
from meshwright.etcd.values import LeaseId


@dataclass(frozen=True, slots=True)
class Terms:
    """The times of a lease in seconds.

    The store ends a lease `lasts` after the last renewal. The holder renews the lease every `every`, and is
    not sure any more after `patience` without success.
    """

    lasts: int = 15
    every: float = 3.0
    patience: float = 10.0


TERMS: Final = Terms()

_AGAIN: Final = 0.2
"""Share of `every` after which a failed renewal is tried again."""


class LeaseEndedError(Exception):
    """Error for a lease which is over or in doubt, as the message says."""


class Lease:
    """A lease of this process."""

    def __init__(self, client: Client, lease: LeaseId, terms: Terms, began: float) -> None:
        self.id = lease
        self._client = client
        self._terms = terms
        self._sure_until = began + terms.patience

    @classmethod
    async def grant(cls, client: Client, terms: Terms) -> Self:
        """Return a new lease; raise EtcdError."""
        began = asyncio.get_running_loop().time()
        return cls(client, await client.grant(terms.lasts), terms, began)

    @property
    def is_sure(self) -> bool:
        """Return whether the store certainly keeps the lease now."""
        return self._left > 0

    @property
    def _left(self) -> float:
        return self._sure_until - asyncio.get_running_loop().time()

    async def keep(self) -> None:
        """Renew the lease; raise LeaseEndedError as soon as the lease is over or in doubt."""
        error, pause = "", self._terms.every
        while self.is_sure:
            await asyncio.sleep(min(pause, max(self._left, 0)))
            began = asyncio.get_running_loop().time()
            try:
                async with asyncio.timeout_at(self._sure_until):
                    if not await self._client.renew(self.id):
                        raise LeaseEndedError("the lease is over: the store has ended the lease")
            except TimeoutError:
                error = "no answer"
            except EtcdError as failure:
                error, pause = str(failure), self._terms.every * _AGAIN
            else:
                self._sure_until, pause = began + self._terms.patience, self._terms.every
        raise LeaseEndedError(f"the lease is in doubt after {self._terms.patience:g} s: {error}")

    async def revoke(self) -> None:
        """End the lease with all keys; an ended lease counts as done. Raises EtcdError."""
        self._sure_until = float("-inf")
        with contextlib.suppress(LeaseNotFoundError):
            await self._client.revoke(self.id)

    async def give_back(self) -> bool:
        """End the lease; return False if the store does not answer soon."""
        try:
            async with asyncio.timeout(self._client.limits.read):
                await self.revoke()
        except (EtcdError, TimeoutError):
            return False
        return True
