"""What types are called."""

from meshwright.sidecars.type_words import short_type


def test_the_types_are_a_closed_set() -> None:
    """A client cannot make a label by asking for a type of its own."""
    assert short_type("type.googleapis.com/evil.Thing") == "other"
    assert short_type("type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment") == "endpoint"
