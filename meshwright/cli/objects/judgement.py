"""The verdict on one manifest before it is written, with the sentences of the admission webhook. Pure."""

from dataclasses import dataclass
from typing import Final

from meshwright.cli.objects.inputs import Input
from meshwright.kubernetes.admission import words
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.providers.etcd.manifest import LARGEST
from meshwright.providers.text.documents import documents
from meshwright.specs.reader import key_meant, read

_OTHER_KIND: Final = "the mesh does not use objects of this kind, so they are not stored"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The object of a manifest, the reason for a refusal (empty: none), and warnings."""

    key: ObjectKey | None
    refused: str = ""
    warnings: tuple[str, ...] = ()


def judged(given: Input, stored: bytes | None) -> Verdict:
    """Return the verdict on a manifest in the place of the `stored` one, if there is one.

    Errors that the stored manifest already has do not refuse the new one, as in a cluster.
    """
    meant = key_meant(given.value)
    if given.fault:
        return Verdict(meant, f"{meant or 'the document'} is invalid:\n  - {given.fault}")
    reading = read(given.value, given.place)
    errors = [problem for problem in reading.problems if problem.severity is Severity.ERROR]
    # A reading with errors has no key, although the manifest may name its object.
    key = meant if errors else reading.key
    if errors and (key is None or not set(errors) <= _errors_of(stored, given)):
        return Verdict(key, words.refusal(key, errors))
    if key is None:
        return Verdict(None, _OTHER_KIND)
    if len(given.content) > LARGEST:
        size = len(given.content)
        return Verdict(key, f"{key} is invalid:\n  - must have at most {LARGEST} bytes; has {size}")
    reported = (problem for problem in reading.problems if problem.severity is not Severity.INFO)
    return Verdict(key, warnings=tuple(words.line(problem, key) for problem in reported))


def _errors_of(stored: bytes | None, given: Input) -> set[Problem]:
    found = () if stored is None else documents(stored.decode("utf-8-sig", "replace"))
    if len(found) != 1 or found[0].faults:
        return set()
    # At the place of the new manifest, because problems at different places differ.
    problems = read(found[0].value, given.place).problems
    return {problem for problem in problems if problem.severity is Severity.ERROR}
