"""Tests of an agent with the addresses of several servers: a request goes to the next one after a failure."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from meshwright.agent.enrolment.certificate_keeper import EnrolledCertificate
from meshwright.agent.enrolment.failures import combined
from meshwright.agent.enrolment.settings import (
    Answer,
    EnrolmentFailure,
    EnrolmentRequestKind,
    EnrolmentResult,
    EnrolmentSettings,
    Question,
)
from meshwright.agent.server_rotation import ServerRotation
from meshwright.agent.subprocess_call import ApartFailed
from meshwright.mesh.host_port import HostPort

A, B, C = (HostPort(name, 15131) for name in ("a.example", "b.example", "c.example"))
RESULT = EnrolmentResult(b"", b"", datetime(2026, 1, 1, tzinfo=UTC), datetime.now(UTC))
TOKEN = "0123456789ab." + "s" * 43


def test_rotation_begins_with_the_server_that_answered_last() -> None:
    """The order is the given one, from the server that answered last; at first from a given or random one."""
    rotation = ServerRotation((A, B, C), first=1)
    assert rotation.order() == (B, C, A)
    rotation.answered(A)
    assert rotation.order() == (A, B, C)
    assert sorted(ServerRotation((A, B, C)).order()) == [A, B, C]
    assert (bool(rotation), bool(ServerRotation(())), ServerRotation(()).order()) == (True, False, ())


@pytest.mark.parametrize(
    ("failures", "expected"),
    [
        ({A: EnrolmentFailure("no", refused=True)}, EnrolmentFailure("no", refused=True)),
        (
            {A: EnrolmentFailure("a.example:15131 is away"), B: EnrolmentFailure("it took 120 s")},
            EnrolmentFailure("a.example:15131 is away; b.example:15131: it took 120 s"),
        ),
        (
            {A: EnrolmentFailure("a.example:15131 refuses", refused=True), B: EnrolmentFailure("b is away")},
            EnrolmentFailure("a.example:15131 refuses; b.example:15131: b is away"),
        ),
        (
            {
                A: EnrolmentFailure("the token is bad", refused=True),
                B: EnrolmentFailure("the token is bad", refused=True),
            },
            EnrolmentFailure("the token is bad", refused=True),
        ),
    ],
)
def test_failures_of_all_servers_are_named(
    failures: dict[HostPort, EnrolmentFailure], expected: EnrolmentFailure
) -> None:
    """Each reason is named once with its server; only refusals by all servers make a retry pointless."""
    assert combined(failures) == expected


class _Agent:
    """An enrolled certificate whose servers answer from a table; `asked` has the requests."""

    def __init__(self, folder: Path, answers: dict[HostPort, Answer | Exception], **settings: Any) -> None:
        self.asked: list[tuple[HostPort, EnrolmentRequestKind, bytes]] = []
        self.answers = answers
        self.enrolled = EnrolledCertificate(
            EnrolmentSettings(**settings), folder, self._replaced, self._shown, ask=self._ask
        )
        # The first server is random.
        self.enrolled._join_servers = ServerRotation(settings.get("join", ()), first=0)
        self.enrolled._renewal_servers = ServerRotation(settings.get("renewal", ()), first=0)

    async def _ask(self, question: Question) -> Answer:
        self.asked.append((question.at, question.asking, question.proof))
        answer = self.answers[question.at]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _replaced(self, change: Callable[[], None]) -> bool:
        raise AssertionError(change)

    def _shown(self) -> Any:
        raise AssertionError


async def test_request_goes_to_the_next_server_after_any_failure(tmp_path: Path) -> None:
    """Servers that are away or do not answer are passed over; later requests stay with the third one."""
    agent = _Agent(
        tmp_path,
        {A: EnrolmentFailure("a.example:15131 is away"), B: ApartFailed("took 120 s"), C: RESULT},
        renewal=(A, B, C),
    )
    with capture_logs() as logs:
        assert await agent.enrolled._call_program(EnrolmentRequestKind.TRUST) == RESULT
        assert await agent.enrolled._call_program(EnrolmentRequestKind.RENEW) == RESULT
    trust, renew = EnrolmentRequestKind.TRUST, EnrolmentRequestKind.RENEW
    assert agent.asked == [(A, trust, b""), (B, trust, b""), (C, trust, b""), (C, renew, b"")]
    assert logs == [
        {
            "event": "request failed, but another server answered",
            "log_level": "warning",
            "reason": "a.example:15131 is away; b.example:15131: took 120 s",
            "server": "c.example:15131",
        }
    ]


async def test_joining_goes_to_the_next_server(tmp_path: Path) -> None:
    """Each server gets the same proof; if all refuse, the failure has both reasons, without the token."""
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_text(TOKEN)
    refused = EnrolmentFailure("a.example:15131 has refused the request", refused=True)
    agent = _Agent(
        tmp_path,
        {A: refused, B: replace(refused, why="b.example:15131 is not the right port")},
        join=(A, B),
        proof=token,
    )
    answer = await agent.enrolled._call_program(EnrolmentRequestKind.JOIN)
    assert answer == EnrolmentFailure(
        "a.example:15131 has refused the request; b.example:15131 is not the right port", refused=True
    )
    join = EnrolmentRequestKind.JOIN
    assert agent.asked == [(A, join, TOKEN.encode()), (B, join, TOKEN.encode())]
    assert TOKEN not in repr(answer)
