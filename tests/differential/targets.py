"""Request targets in the form of clients: random ones, and ambiguous spellings of the same path."""

from random import Random
from typing import Final

PLAIN: Final = (
    *(b"/", b"/", b"/", b"//", b"a", b"books", b"B", b".", b"..", b"...", b";", b";x=1", b"?", b"?x=/../y"),
    *(b"%2e", b"%2E", b"%2e%2e", b"\\", b"%61", b"%41", b"%7e", b"%5f", b"%20", b"%3b", b"%3f", b"%23"),
    *(b"%c3%a9", b"%C3%A9", b"%ff", b"%7f", b"%01", b"%2b", b"%", b"%2", b"%zz", b"%u0041", b"%25", b"%252e"),
    *(
        b"%2%65",
        b"%%32e",
        b"%32",
        b"%65",
        b"%66",
        b"%6",
        b"2",
        b"5",
        b"e",
        b"f",
        b"~",
        b"-",
        b"_",
        b"+",
        b"*",
    ),
    *(b"{", b"}", b"|", b"^", b"`", b'"', b"<", b">", b"[", b"]", b"'", b"$&,=:@!()"),
)
"""What all sidecars pass on, in one way or another."""

TURNED_DOWN: Final = (
    *(
        b"%2f",
        b"%2F",
        b"%5c",
        b"%5C",
        b"#",
        b"%00",
        b"\x00",
        b"\x01",
        b"\x7f",
        b"\xc3\xa9",
        b"\xff",
        b" ",
        b"\t",
    ),
)
"""What some sidecar turns down, in HTTP/1.1 at least, if it is in the path."""

BEGINNINGS: Final = (
    *(
        b"http://y/",
        b"HTTPS://y:80/",
        b"http://u@y",
        b"http://[::1]:8/",
        b"http://y",
        b"http://y?",
        b"http://",
    ),
    *(b"http://y:99999/", b"http://_/", b"ftp://y/", b"http:/y", b"", b"\\", b"*", b"x/", b"#"),
)
"""What a target may begin with besides a slash."""


def target(random: Random) -> bytes:
    """Make any target; four in five begin with a slash, and four in five are refused by no sidecar."""
    pieces = PLAIN if random.random() < 0.8 else (*PLAIN, *TURNED_DOWN * 3)
    begun = b"/" if random.random() < 0.8 else random.choice(BEGINNINGS)
    result = begun + b"".join(random.choices(pieces, k=random.randint(0, 8)))
    return result.rstrip(b" \t")  # which would belong to the request line, not to the target


def written(random: Random, path: str) -> str:
    """Spell a path in another way, in most cases one that sidecars normalize to the same path."""
    path, mark, query = path.partition("?")
    segments = path.split("/")[1:]
    ways = random.choices(_WAYS, k=random.choice((1, 1, 2)))
    for way in ways:
        segments = way(random, segments)
    return "/" + "/".join(segments) + mark + query


def _there_and_back(random: Random, segments: list[str]) -> list[str]:
    where = random.randrange(len(segments) + 1) if segments[-1:] != [""] else 0
    up = random.choice(("..", "%2e%2E", ".%2e", "..;", "..;x=1", "%2e.;x", "x\\..;"))
    return [*segments[:where], random.choice(("x", "books", "%zz", "a;b", "")), up, *segments[where:]]


def _stay(random: Random, segments: list[str]) -> list[str]:
    where = random.randrange(len(segments))
    return [*segments[:where], random.choice((".", "%2e", ".;", ".;x=1", "%2E;")), *segments[where:]]


def _escape(random: Random, segments: list[str]) -> list[str]:
    where = random.randrange(len(segments))
    return [
        "".join(
            f"%{ord(letter):02{random.choice('xX')}}" if random.random() < 0.5 else letter
            for letter in segment
        )
        if number == where
        else segment
        for number, segment in enumerate(segments)
    ]


def _backslash(random: Random, segments: list[str]) -> list[str]:
    where = random.randrange(len(segments))
    return [*segments[:where], "\\".join(segments[where:])]


def _double(random: Random, segments: list[str]) -> list[str]:
    where = random.randrange(len(segments))
    return [*segments[:where], "", *segments[where:]]


def _escaped_slash(random: Random, segments: list[str]) -> list[str]:
    where = random.randrange(len(segments))
    return [*segments[:where], random.choice(("%2f", "%2F", "%5c")).join(segments[where:])]


def _odd(random: Random, segments: list[str]) -> list[str]:
    where = random.randrange(len(segments))
    odd = random.choice(("#x", "%00", "%", "%252e%252e", "%2%65", "é", "\udcff", "..%2f", ";x", "%3b"))
    return [*segments[:where], segments[where] + odd, *segments[where + 1 :]]


_WAYS: Final = (
    *(_there_and_back, _there_and_back, _stay, _escape, _escape, _backslash, _double, _escaped_slash, _odd),
)
