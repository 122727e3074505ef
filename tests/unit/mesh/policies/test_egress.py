"""Tests of the host patterns that cover a name."""

import itertools

from meshwright.mesh.policies.egress import covers, patterns

NAMES = ["a", "b.a", "c.b.a", "xa", "x.a", "*.a", "*.b.a", "*.c.b.a", "*", "10.0.0.1", "*."]


def test_patterns_are_exactly_those_that_cover_a_name() -> None:
    """`patterns` and `covers` agree for all pairs of names."""
    for host, name in itertools.product(NAMES[:-1], NAMES[:-1]):
        if name != "*":
            assert (host in set(patterns(name))) is covers(host, name), (host, name)
