"""Tests of the joining port with random bytes over real sockets."""

import random
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import structlog

from protos.meshwright.enrolment.v1 import enrolment_pb2 as wire
from tests.feature.identity.grpc_machine import JOIN, TOKEN, Machine, call, channel, join
from tests.feature.identity.test_enrolment import PORTS

REQUESTS = 50
"""Fewer than an address may ask at once."""
REFUSED = {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.PERMISSION_DENIED}


def _drawn(dice: random.Random, csr: bytes, token: str) -> bytes:
    """Return random bytes, or a request of valid and invalid parts that is invalid as a whole."""
    if dice.random() < 0.2:
        return dice.randbytes(dice.randrange(200))
    at = dice.randrange(len(csr))
    broken = csr[:at] + dice.randbytes(dice.randrange(3)) + csr[at + 1 :]
    kind = dice.choice(["join-token", "join-token", "kubernetes", "certificate", "", "\u00e9" * 1000])
    shown = dice.choice([token[: dice.randrange(len(token) - 1)].encode(), dice.randbytes(300), b""])
    proof = wire.Proof(kind=kind, data=shown)
    asked = wire.JoinRequest(csr_der=dice.choice([csr, broken, dice.randbytes(300)]), proof=proof)
    whole = asked.SerializeToString()
    return whole if dice.random() < 0.7 else whole[: dice.randrange(len(whole))]


async def test_random_join_requests_are_refused_with_a_message(serve: Callable[..., Awaitable[Any]]) -> None:
    """No random request causes an internal error or a use of the token, which admits a machine afterwards."""
    server = await serve(**PORTS)
    made = await server.ask("POST", "/certs/tokens", TOKEN)
    identifier, secret, _ = made["token"].split(".")
    machine, dice = Machine(), random.Random(15)  # noqa: S311 - what is drawn is to be the same each time
    with structlog.testing.capture_logs() as logs:
        for _ in range(REQUESTS):
            request = _drawn(dice, machine.csr, f"{identifier}.{secret}")
            async with channel(server, "enrolment") as opened:
                answered = await call(opened, JOIN, request)
            assert answered.code in REFUSED, (answered, request)
            assert (answered.reason, 0 < len(answered.words) < 300) == ("", True), request
    assert not [log for log in logs if log["log_level"] == "error"]
    assert secret not in str(logs)
    assert (await join(server, machine, made["token"])).code is grpc.StatusCode.OK
    (listed,) = (await server.ask("GET", "/certs/tokens"))["join_tokens"]
    assert listed["used"] == 1
