"""Tests of the version of an API server."""

from typing import Any

import pytest

from meshwright.kube.builtin import minor_version


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"major": "1", "minor": "29"}, (1, 29)),
        ({"major": "1", "minor": "29+"}, (1, 29)),
        ({"major": "", "minor": "x"}, None),
        ({}, None),
    ],
)
def test_versions_are_read_as_providers_write_them(said: Any, expected: Any) -> None:
    """GKE and EKS append a sign to the minor version."""
    assert minor_version(said) == expected
