"""Bill of materials of the wheel's locked requirements, in CycloneDX 1.6.

The bill has each package of `requirements/run.txt` with version, licence (from `requirements/licences.md`),
the hashes accepted by pip, and the required packages. The wheel itself is the described component, with the
SHA-256 of the file, so that a reader can match wheel and bill.

CycloneDX asks for a unique serial number and a time. Here the number is derived from the wheel's hash and the
time is the commit's, so that two builds of a commit are equal.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.model import (
    ExternalReference,
    ExternalReferenceType,
    HashAlgorithm,
    HashType,
    Property,
    XsUri,
)
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.release.archives import Files

LOCK: Final = "requirements/run.txt"
LICENCES: Final = "requirements/licences.md"
_PIN: Final = re.compile(
    r"^([a-z0-9._-]+)==([^\s;\\]+)(?: ; ([^\\\n]+?))? \\\n((?:    --hash=.*\n?)+)", re.MULTILINE
)
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_LICENCE: Final = re.compile(r"^\| ([a-z0-9._-]+) \| \S+ \| (.+) \|$", re.MULTILINE)
_MARKER: Final = "meshwright:marker"
"""Property of a package for some platforms only, for example `sys_platform == 'win32'`."""
_PLATFORM: Final = MappingProxyType(
    {
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "os_name": "posix",
        "platform_system": "Linux",
        "sys_platform": "linux",
    }
)
"""Platform of the project. A package for other platforms is optional in the bill."""


class BillError(Exception):
    """Error for a locked package without a licence; the message names the remedy."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A package of the lock file: name, version, marker ("" for none), and accepted SHA-256 sums."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wheel:
    """The described wheel: version, SHA-256, and the commit's time in seconds since 1970."""

    version: str
    digest: str
    time: int


def locked(lock: str) -> tuple[Pin, ...]:
    """Return the packages of a lock file, in the order of the file."""
    return tuple(
        Pin(name, version, marker or "", tuple(_HASH.findall(hashes)))
        for name, version, marker, hashes in _PIN.findall(lock)
    )


def required(requirements: Iterable[Requirement], extras: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Return the names of required packages, sorted, for example `attrs` for `attrs>=17.3.0`.

    Requirements of extras count if some package requires the extra. Markers of platforms count as met, so
    that the bill is the same wherever it is made; a package for other platforms has a marker in the bill.
    """
    return tuple(sorted({canonicalize_name(item.name) for item in requirements if _counts(item, extras)}))


def _counts(requirement: Requirement, extras: frozenset[str]) -> bool:
    marker = requirement.marker
    if marker is None or "extra" not in str(marker):
        return True
    return any(marker.evaluate({**_PLATFORM, "extra": extra}) for extra in extras)


def _graph(parsed: Mapping[str, Sequence[Requirement]]) -> dict[str, tuple[str, ...]]:
    """Return the names of required packages by package. An extra counts if any package requires the extra."""
    requirements = [item for items in parsed.values() for item in items]
    extras = {
        name: frozenset(
            extra for item in requirements if canonicalize_name(item.name) == name for extra in item.extras
        )
        for name in parsed
    }
    return {name: required(items, extras[name]) for name, items in parsed.items()}


def bill(files: Files, wheel: Wheel, requires: Mapping[str, Iterable[str]]) -> str:
    """Return the bill as JSON.

    `requires` has the requirements of each locked package, as in the metadata. Raises BillError for a package
    without a row in `requirements/licences.md`.
    """
    packages = locked(files[LOCK].text)
    licences = dict(_LICENCE.findall(files[LICENCES].text))
    project = tomllib.loads(files["pyproject.toml"].text)["project"]
    described = _described(project, wheel)
    made = {package.name: _component(package, licences) for package in packages}
    result = Bom(
        serial_number=uuid5(NAMESPACE_URL, f"{described.purl}?checksum=sha256:{wheel.digest}"),
        metadata=BomMetaData(component=described, timestamp=datetime.fromtimestamp(wheel.time, UTC)),
        components=made.values(),
    )
    stated = {described.name: project["dependencies"], **{name: requires.get(name, ()) for name in made}}
    graph = _graph({name: [Requirement(text) for text in texts] for name, texts in stated.items()})
    for name, component in {described.name: described, **made}.items():
        # Some required packages are not locked, because newer Pythons have them built in.
        result.register_dependency(
            component, [made[required_name] for required_name in graph[name] if required_name in made]
        )
    outputter = make_outputter(result, OutputFormat.JSON, SchemaVersion.V1_6)
    return outputter.output_as_string(indent=2) + "\n"


def _described(project: Mapping[str, str], wheel: Wheel) -> Component:
    purl = PackageURL("pypi", name="meshwright", version=wheel.version)
    return Component(
        name="meshwright",
        type=ComponentType.APPLICATION,
        version=wheel.version,
        description=project["description"],
        licenses=[LicenseExpression(project["license"])],
        purl=purl,
        bom_ref=str(purl),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=wheel.digest)],
    )


def _component(package: Pin, licences: Mapping[str, str]) -> Component:
    if package.name not in licences:
        raise BillError(
            f"{LICENCES} does not list {package.name} of {LOCK}: run `make licences` and commit the result"
        )
    purl = PackageURL("pypi", name=package.name, version=package.version)
    return Component(
        name=package.name,
        version=package.version,
        licenses=[LicenseExpression(licences[package.name])],
        purl=purl,
        bom_ref=str(purl),
        scope=ComponentScope.REQUIRED if _is_needed(package.marker) else ComponentScope.OPTIONAL,
        properties=_properties(package),
        external_references=[_distribution(package)],
    )


def _is_needed(marker: str) -> bool:
    return not marker or Marker(marker).evaluate({**_PLATFORM})


def _properties(package: Pin) -> Iterator[Property]:
    if package.marker:
        yield Property(name=_MARKER, value=package.marker)


def _distribution(package: Pin) -> ExternalReference:
    """Return the reference to the package's files, with the sums of all accepted files."""
    return ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION,
        url=XsUri(f"https://pypi.org/simple/{package.name}/"),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in package.hashes],
    )
