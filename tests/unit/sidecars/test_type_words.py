"""Tests of the short names of types."""

from meshwright.sidecars.type_words import short_type


def test_unknown_type_has_the_short_name_other() -> None:
    """A client cannot create a label by asking for a type of its own."""
    assert short_type("type.googleapis.com/evil.Thing") == "other"
    assert short_type("type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment") == "endpoint"
