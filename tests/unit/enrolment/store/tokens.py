"""A join token and its stored record, for tests."""

from datetime import UTC, datetime, timedelta

from meshwright.enrolment.tokens import JoinToken, TokenRecord, TokenRequest, recorded

NOW = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
DAY = timedelta(days=1)
TOKEN = JoinToken("0123456789ab", "Secret-" + "s" * 36, ("ab" * 32,))


def record(uses: int = 1, **changes: object) -> TokenRecord:
    """Return the stored record of TOKEN."""
    return recorded(TokenRequest("shop", "market", uses=uses, **changes), TOKEN.id, "somebody", NOW)  # type: ignore[arg-type]
