"""Proof by join token, for one or more uses, for a service or for one proxy."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from meshwright.enrolment.limits import Allowances, Pace
from meshwright.enrolment.proofs.contract import Entitlement, Evidence, ProofRefused
from meshwright.enrolment.store.contract import TokenRefused, TokenStore
from meshwright.enrolment.tokens import PROOF_KIND, JoinToken, TokenRecord, TokenRefusal, read_token
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import Namespace, ServiceName

KIND: Final = PROOF_KIND


class JoinTokenProof:
    """Judge of join tokens from a store; `monotonic` is the clock of the rate limit per token.

    The id of a token is not secret. A client with only the id is limited by address, and cannot use up the
    limit of the token.
    """

    kind = KIND

    def __init__(self, store: TokenStore, pace: Pace, monotonic: Callable[[], float]) -> None:
        self._store = store
        self._allowed = Allowances(pace)
        self._monotonic = monotonic

    async def recognise(self, evidence: Evidence) -> str:
        """Return the id of the join token in a request if the request also shows the token's secret."""
        try:
            token = _read(evidence.data)
            await asyncio.to_thread(self._store.recognise, token)
        except (ProofRefused, TokenRefused):
            return ""
        return token.id

    async def prove(self, evidence: Evidence, now: datetime) -> Entitlement:
        """Return the entitlement of a token, and assign a use of the token to the key."""
        token = _read(evidence.data)
        try:
            await asyncio.to_thread(self._store.recognise, token)
            # Only after the secret was checked, so guesses do not use up the token's allowance.
            self._allowed.require(token.id, self._monotonic(), f"token {token.id}")
            redeemed = await asyncio.to_thread(self._store.redeem, token, evidence.key_digest, now)
        except TokenRefused as error:
            raise ProofRefused(error.reason, proof=token.id) from error
        record = redeemed.token
        entitled = Entitlement(_holder(record), record.id, _validity(record), since=record.made_at)
        if not redeemed.first:
            return entitled
        return replace(entitled, give_back=partial(self._store.give_back, record.id, evidence.key_digest))


def _read(data: bytes) -> JoinToken:
    try:
        return read_token(data.decode("ascii"))
    except ValueError:  # raised without its cause, because the cause may contain the token
        raise ProofRefused(TokenRefusal.MALFORMED) from None


def _holder(record: TokenRecord) -> ProxyName | tuple[ServiceName, Namespace]:
    if record.uuid is None:
        return record.service, record.namespace
    return ProxyName(record.uuid, record.service, record.namespace)


def _validity(record: TokenRecord) -> timedelta | None:
    return None if record.days is None else timedelta(days=record.days)
