"""Names shared by the programs: headers and paths of the bookstore."""

from typing import Final

CALLER_HEADER: Final = "client-app"
"""Header with the client's name; policy can match the header."""
TOKEN_HEADER: Final = "demo-token"  # noqa: S105 - a mark by which a probe's requests are counted, no secret
"""Header with the token of a probe."""
IDENTITY_HEADER: Final = "identity"
"""Header with the name of the responding program."""
POD_HEADER: Final = "pod"
"""Header with the responding Pod, for example `bookstore-5d8f6c7b9-x2x4k`."""
USER_AGENT: Final = "bookstore-http-client/1.0"

BOOKS_BOUGHT: Final = "/books-bought"
BUY_A_BOOK: Final = "/buy-a-book/new"
RESTOCK_BOOKS: Final = "/restock-books"


def client_headers(name: str) -> dict[str, str]:
    """Return the headers of every request of the client `name`."""
    return {CALLER_HEADER: name, "user-agent": USER_AGENT}
