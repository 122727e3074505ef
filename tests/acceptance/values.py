"""Values of every kind for manifests: mostly valid, often at a bound, some invalid."""

import string
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv6Address
from random import Random
from typing import Any, Final, TypeVar

ODD_EXPRESSIONS: Final = (
    *(r"(?<name>x)", r"(?P<name>x)", r"(?P<été>x)", r"\C", r"[\b]x", r"/caf\é", "(?i)/x", "(?s).", "(?U)a+"),
    *("a{1000}", "(a{1000}){2}", "a{1001}", "a{,3}", "a{2,1}", "x*+", "x**", r"\z", r"\Z", r"\Qa.b\E", r"\E"),
    *(
        r"\pN",
        r"\p{Greek}",
        r"\p{L}",
        "[[:alpha:]]",
        "[[:foo:]]",
        "[z-a]",
        "[]a]",
        "[^]a]",
        "[a",
        "a]",
        "{1}",
    ),
    *("()", "(?:)", "(?i", "|", "^*", "$+", "\\", r"\8", r"\x{10FFFF}", r"\x{e9}", r"\xF", r"\777", "[ê-é]"),
    *(
        "[é-ê]",
        "(?=a)",
        "(?<=a)",
        "(?>a)",
        r"(a)\1",
        "(?|a|b)",
        ".{1000}",
        r"\pN{90}",
        "x" * 4096,
        "x" * 4097,
    ),
    *(
        "(" * 200 + ")" * 200,
        "(a*)*",
        "(?i)\u017f",
        r"\0",
        "\0",
        "a\nb",
        "\t",
        "\u2028",
        "\U0001f600",
        "[\U0001f600]",
    ),
    *("/books(/[0-9]+)?", ".*", "/.*", "^/a$", r"/\d+/?", "(a|b)+c", "", " ", "\ufffd", "[&&]", r"\_", r"\-"),
)
ATOMS: Final = (
    *("a", "/", ".", r"\d", r"\w", "[a-z]", "[^/]", "é", "(?:x|y)", "(z)", r"\.", r"\pL", "[[:digit:]]", " "),
    *("日", "^", "$", r"\b", r"\x41", "(?i:k)", "%", "\\", "(", "["),
)
QUANTIFIERS: Final = ("", "", "", "*", "+", "?", "{2}", "{1,3}", "*?", "{0}", "{,2}")
HEADERS: Final = (
    *(
        "x-tag",
        "X-Tag",
        "host",
        "Host",
        "user-agent",
        "cookie",
        "te",
        "x-request-id",
        "content-length",
        "_",
        "0",
    ),
    *("a" * 300, "!#$%&'*+-.^_`|~", "transfer-encoding", "x-envoy-original-path"),
)
BAD_HEADERS: Final = (":authority", ":path", "a b", "é", "a:", "", "a\n", "\0", "a\u0085")
TOKEN: Final = string.ascii_letters + string.digits + "!#$%&'*+-.^_`|~"
ADDRESSES: Final = (
    *("10.0.0.1", "10.96.0.1", "127.0.0.1", "169.254.1.1", "192.0.2.255", "240.0.0.1", "255.255.255.255"),
    *("fd00::1", "2001:db8::7", "FE80::1", "::1", "::ffff:10.0.0.1", "::ffff:0:10.0.0.1", "64:ff9b::a00:1"),
    *("2001:DB8:0:0:0:0:0:8", "::10.0.0.1", "100.64.0.1", "0.0.0.1", "1.1.1.1"),
)
BAD_ADDRESSES: Final = (
    *(
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "ff02::1",
        "fe80::1%eth0",
        "10.0.0.256",
        "010.0.0.1",
        "10.0.0",
        "1.2.3.4/32",
    ),
    *("", " ", "localhost", "[::1]", "::ffff:0.0.0.0", "::ffff:224.0.0.1", "1.2.3.4\n", "\u0661.2.3.4"),
)
ODD: Final[tuple[Any, ...]] = (
    *(None, 0, -1, 7, True, 1.5, [], {}, ["a"], {"a": "b"}, 2**64),
    *(
        "",
        " ",
        "\0",
        "a\nb",
        "a\r",
        "é",
        "日本",
        "\ud800",
        "\U0001f600",
        "a" * 300,
        "%",
        "*",
        "A",
        "-a",
        "a_b",
    ),
    *(
        "a.b",
        "a" * 63,
        "a" * 64,
        ".",
        "1",
        "0",
        "true",
        "null",
        "~",
        "a/b",
        "a|b",
        "%REQ(x)%",
        "\x7f",
        "\x85",
        "\u2028",
    ),
)


T = TypeVar("T")


class Dice(Random):
    """A random generator with these tests' distributions; everything is from its seed."""

    def odds(self, one_in: int) -> bool:
        """Return True one time in `one_in`."""
        return self.randrange(one_in) == 0

    def some(self, make: Callable[[], T], most: int) -> tuple[T, ...]:
        """Return one to `most` different values."""
        return tuple(dict.fromkeys(make() for _ in range(self.randint(1, most))))

    def few(self, values: Sequence[T], most: int) -> list[T]:
        """Return up to `most` different values of a sequence."""
        return self.sample(values, min(len(values), self.randint(0, most)))

    def rarely(self, good: Any, odd: Callable[[], Any] | None = None, one_in: int = 25) -> Any:
        """Return the good value, and one time in `one_in` an odd one, by default any."""
        if not self.odds(one_in):
            return good
        return self.choice(ODD) if odd is None else odd()

    def label(self) -> str:
        """Return a DNS label, often of 63 characters or of one."""
        inner = string.ascii_lowercase + string.digits
        size = self.choice((1, 2, 3, 8, 8, 62, 63, 63))
        middle = self.choice(("a", "-", "0", "b-", "x0-")) * size
        return (self.choice(inner) + middle)[: size - 1] + self.choice(inner)

    def name(self) -> str:
        """Return a Kubernetes name: a label, or labels with dots between, up to 253 characters."""
        result = ".".join(self.label() for _ in range(self.choice((1, 1, 1, 2, 4))))
        return result[:253].rstrip(".-")

    def text(self) -> str:
        """Return a short text of any characters."""
        ranges = ((32, 126), (32, 126), (0, 0x2FF), (0x3000, 0xD7FF), (0x10000, 0x1FFFF))
        return "".join(chr(self.randint(*self.choice(ranges))) for _ in range(self.randint(1, 8)))

    def expression(self) -> str:
        """Return a regular expression: an odd one, or atoms with quantifiers, some of them invalid."""
        if self.odds(3):
            return self.choice(ODD_EXPRESSIONS)
        atoms = ATOMS if self.odds(3) else ATOMS[:20]
        return "".join(self.choice(atoms) + self.choice(QUANTIFIERS) for _ in range(self.randint(1, 6)))

    def header_name(self) -> str:
        """Return a header name: a usual one, any token, or rarely an invalid one."""
        if self.odds(12):
            return self.choice(BAD_HEADERS)
        return self.choice((*HEADERS, "".join(self.choices(TOKEN, k=self.randint(1, 12)))))

    def port(self) -> int:
        """Return a port number, possibly one that proxies use themselves."""
        return self.choice((80, 8080, 443, 3306, 1, 65535, 15001, 15003, 15128, 9091, self.randint(1, 65535)))

    def address(self) -> str:
        """Return an address of one machine in one of many forms, or rarely an invalid one."""
        kind = self.randrange(8)
        if kind < 3:
            return self.choice(ADDRESSES)
        if kind < 6:
            return f"10.0.0.{self.randint(1, 250)}"
        return str(IPv4Address(self.getrandbits(32)) if kind == 6 else IPv6Address(self.getrandbits(128)))

    def bad_address(self) -> Any:
        """Return a value that is no address of one machine."""
        return self.choice((*BAD_ADDRESSES, *ODD))
