"""The kinds of the reference, which are described when a test first needs one and not at collection."""

import pytest

from meshwright.cli.offline import reference
from meshwright.mesh.kinds import Kind
from meshwright.specs.reference.shapes import DescribedKind


@pytest.fixture
def described(request: pytest.FixtureRequest) -> DescribedKind:
    """Return the description of the kind that the test is parametrized with (see `DESCRIBED`)."""
    kind: Kind = request.param
    (described_kind,) = (item for item in reference.described() if item.kind == kind)
    return described_kind
