"""Problems of one manifest, collected during reading."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import Origin
from meshwright.mesh.problems.problem import Problem, Problems, Severity
from meshwright.mesh.problems.tally import Tally
from meshwright.specs.codes import Code
from meshwright.specs.regexes import Expressions
from meshwright.specs.show import shape, show

Words = str | Callable[[], str]
"""The correct value in words; a function takes time, and is called only if the problem is kept."""

WITHIN: Final = "in this document"

_NOTHING = object()


@dataclass(slots=True)
class Notes:
    """Problems of one manifest; if `refused`, no object is made from the manifest.

    `refuse` reports an error that makes the whole object unusable. `drop` reports an error of a part, which
    is left out. `warn` and `inform` report problems of an object in force. `is_clean` is True without any
    problem, and `fault` is the first error, empty without one. `tally` bounds the number of kept problems;
    items of a list and documents of a file can share one.
    """

    origin: Origin
    key: ObjectKey | None = None
    problems: list[Problem] = field(default_factory=list)
    refused: bool = False
    is_clean: bool = True
    fault: str = ""
    tally: Tally = field(default_factory=Tally)
    expressions: Expressions = field(default_factory=Expressions)

    def all_problems(self) -> Problems:
        """Return the kept problems of the manifest, and for each code the number of further ones."""
        return (*self.problems, *self.tally.rest(self.origin, self.key, WITHIN))

    def part(self) -> "Notes":
        """Return notes for a part of the manifest; problems and bounds are common, the verdict is its own."""
        return Notes(self.origin, self.key, self.problems, tally=self.tally, expressions=self.expressions)

    def refuse(self, code: Code, path: str, expected: Words, value: object = _NOTHING) -> None:
        """Report an error; the object is refused."""
        self.refused = True
        self._add(code, Severity.ERROR, path, expected, value)

    def refuse_shape(self, code: Code, path: str, expected: Words, value: object) -> None:
        """Report an error, and describe the value without quoting it; the object is refused.

        This is for documents that are not manifests at all: they can be anything, for example a password in
        the wrong file.
        """
        self.refused = True
        if self._is_kept(code, Severity.ERROR):
            self._keep(code, Severity.ERROR, path, expected, shape(value))

    def drop(self, code: Code, path: str, expected: Words, value: object = _NOTHING) -> None:
        """Report an error in a part of the object; the part is left out, and the rest applies."""
        self._add(code, Severity.ERROR, path, expected, value)

    def warn(self, code: Code, path: str, expected: Words, value: object = _NOTHING) -> None:
        """Report a warning about a value that applies but is probably not intended."""
        self._add(code, Severity.WARNING, path, expected, value)

    def inform(self, code: Code, path: str, expected: Words, value: object = _NOTHING) -> None:
        """Report, as information, a value that was read but is not used."""
        self._add(code, Severity.INFO, path, expected, value)

    def _add(self, code: Code, severity: Severity, path: str, expected: Words, value: object) -> None:
        if severity is Severity.ERROR and not self.fault:
            self.fault = f"{path}: {expected if isinstance(expected, str) else expected()}"
        if self._is_kept(code, severity):
            self._keep(code, severity, path, expected, "" if value is _NOTHING else show(value, path))

    def _is_kept(self, code: Code, severity: Severity) -> bool:
        self.is_clean = False
        # Unsupported kinds are always kept: the source reduces them to one line for each kind.
        return code is Code.OTHER_KIND or self.tally.admits(str(code), severity)

    def _keep(self, code: Code, severity: Severity, path: str, expected: Words, quoted: str) -> None:
        self.problems.append(
            Problem(
                code=str(code),
                severity=severity,
                origin=self.origin,
                key=self.key,
                field=path,
                value=quoted,
                expected=expected if isinstance(expected, str) else expected(),
            )
        )
