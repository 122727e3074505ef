"""Reference of all kinds and fields of manifests, from the readers and their examples."""

import functools
import json
from collections.abc import Collection, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Final

from meshwright.cli.errors import CommandFailed
from meshwright.cli.printing import files
from meshwright.mesh.kinds import Kind
from meshwright.mesh.problems.spelling import nearest
from meshwright.providers.text.documents import documents
from meshwright.records.kubernetes.definition import DEFINITION, RECORDS
from meshwright.specs.reference import page as pages
from meshwright.specs.reference.crds import crds
from meshwright.specs.reference.meanings.definitions import INSTALLED
from meshwright.specs.reference.meanings.kinds import KINDS
from meshwright.specs.reference.probing import all_described
from meshwright.specs.reference.schema import Schema, of_all, of_kind, reference
from meshwright.specs.reference.shapes import DescribedKind
from meshwright.specs.reference.structural import Structural

ALL: Final = "all"
"""Name of the schema file for all kinds."""


def page() -> str:
    """Return the content of docs/policy/reference.md."""
    return pages.page(described(), text_of)


def records() -> Sequence[Mapping[str, object]]:
    """Return all kinds and fields as JSON."""
    return pages.as_records(described())


def schema(kind: str | None) -> Schema:
    """Return the schema of a kind by its name, or of all kinds for None; raise CommandFailed if unknown."""
    if kind is None:
        return of_all(described())
    by_name = {str(described_kind.kind): described_kind for described_kind in described()}
    return of_kind(by_name[_known("KIND", kind, by_name)])


def definitions(wanted: Sequence[str]) -> tuple[Structural, ...]:
    """Return the CustomResourceDefinitions of named kinds, or all of them without names.

    The kind Record is for the state of several servers, not for users.

    Raises CommandFailed for a kind without a definition.
    """
    names = [*(str(kind) for kind in KINDS if kind in INSTALLED), RECORDS.kind]
    chosen = {_known("--kind", item, names) for item in wanted} or {*names}
    result = crds([described_kind for described_kind in described() if str(described_kind.kind) in chosen])
    return (*result, DEFINITION) if RECORDS.kind in chosen else result


def _known(subject: str, name: str, names: Collection[str]) -> str:
    if name in names:
        return name
    near = nearest(name, names)
    meant = f"did you mean {near}?" if near else f"must be one of {', '.join(names)}"
    raise CommandFailed(f"{subject} is {name!r}: {meant}")


def schemas() -> Mapping[str, str]:
    """Return the text of all schemas by file name; schemas of kinds refer to the schema of all kinds."""
    # References instead of copies keep the files small, and consistent with each other.
    result = {ALL: schema(None)} | {
        str(described_kind.kind): reference(described_kind, f"{ALL}.json") for described_kind in described()
    }
    return {f"{name}.json": json.dumps(item, indent=2) + "\n" for name, item in result.items()}


def write(directory: Path) -> tuple[Path, ...]:
    """Write all schemas into a directory, created if missing; raise CommandFailed."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in schemas().items():
            files.write(directory / name, text.encode(), 0o644)
    except OSError as error:
        raise CommandFailed(
            f"cannot write the schemas: {error}; give another directory with --directory"
        ) from error
    return tuple(directory / name for name in schemas())


@functools.cache
def described() -> tuple[DescribedKind, ...]:
    """Return all kinds of manifests with their fields, found by reading the example manifests."""
    values = [document.value for kind in KINDS for document in documents(text_of(kind))]
    return all_described([value for value in values if isinstance(value, dict)])


def text_of(kind: Kind) -> str:
    """Return the text of the example manifests of a kind."""
    return (resources.files("meshwright.specs.reference") / "examples" / f"{kind}.yaml").read_text("utf-8")
