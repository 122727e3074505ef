"""Files of a release: their names and their order."""

from dataclasses import dataclass
from typing import Final

SUMS: Final = "SHA256SUMS"
SIGNATURE: Final = ".sig"
"""Suffix of `ssh-keygen -Y sign` after the name of the signed file."""
IMAGES: Final = ("control-plane", "proxy")
"""Targets of the Dockerfile with an image in a release."""


@dataclass(frozen=True, slots=True)
class Names:
    """Names of a release's files. The wheel and the sdist are named by the wheel and sdist formats.

    The chart's name is the one of `helm package`, and differs from the sdist's only in the suffix.
    """

    version: str

    @property
    def sdist(self) -> str:
        """Return the name of the source distribution, from which the wheel is built."""
        return f"meshwright-{self.version}.tar.gz"

    @property
    def wheel(self) -> str:
        """Return the name of the wheel."""
        return f"meshwright-{self.version}-py3-none-any.whl"

    @property
    def requirements(self) -> str:
        """Return the name of the wheel's locked requirements, for `pip install --require-hashes`."""
        return f"meshwright-{self.version}-requirements.txt"

    @property
    def chart(self) -> str:
        """Return the name of the chart package."""
        return f"meshwright-{self.version}.tgz"

    def context(self, image: str) -> str:
        """Return the name of the build context of an image, for example `proxy`."""
        return f"meshwright-{image}-{self.version}-context.tar.gz"

    @property
    def bill(self) -> str:
        """Return the name of the bill of materials. The suffix is CycloneDX's recommendation."""
        return f"meshwright-{self.version}.cdx.json"

    @property
    def provenance(self) -> str:
        """Return the name of the provenance. The suffix is in-toto's recommendation."""
        return f"meshwright-{self.version}.intoto.json"

    @property
    def built(self) -> tuple[str, ...]:
        """Return the files in the provenance, in order."""
        contexts = (self.context(image) for image in IMAGES)
        return (self.sdist, self.wheel, self.requirements, self.chart, *contexts, self.bill)

    @property
    def summed(self) -> tuple[str, ...]:
        """Return the files with a line in SHA256SUMS, in order."""
        return (*self.built, self.provenance)

    @property
    def signed(self) -> tuple[str, ...]:
        """Return the files with a signature of their own. The sums sign all other files."""
        return (SUMS, self.bill, self.provenance)


def is_of_a_release(name: str) -> bool:
    """Return whether a file in `dist/` is of this or another release, and is replaced by the next one."""
    return name.startswith(("meshwright-", SUMS))
