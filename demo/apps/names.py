"""Names that the programs agree on: headers and paths of the bookstore."""

from typing import Final

CALLER_HEADER: Final = "client-app"
"""What a client calls itself; policy matches on it too."""
TOKEN_HEADER: Final = "demo-token"  # noqa: S105 - a mark by which a probe's requests are counted, no secret
"""Marks the requests of one probe."""
IDENTITY_HEADER: Final = "identity"
"""Which program answered."""
POD_HEADER: Final = "pod"
"""Which of several that are the same program answered."""
USER_AGENT: Final = "bookstore-http-client/1.0"

BOOKS_BOUGHT: Final = "/books-bought"
BUY_A_BOOK: Final = "/buy-a-book/new"
RESTOCK_BOOKS: Final = "/restock-books"


def client_headers(name: str) -> dict[str, str]:
    """Return the headers that a client called `name` sends with each request."""
    return {CALLER_HEADER: name, "user-agent": USER_AGENT}
