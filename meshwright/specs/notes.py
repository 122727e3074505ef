"""What a reader has to say about one manifest, collected while it reads on."""

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
"""What would be right; a function where that takes time to find out, called only if the problem is kept."""

WITHIN: Final = "in this document"

_NOTHING = object()


@dataclass(slots=True)
class Notes:
    """Problems of one manifest; `refused` says that no object may be made of it.

    `refuse` is for what makes the whole object unusable, `drop` for a part that is left out while the
    rest stays in force, `warn` and `inform` for what does not hinder. `is_clean` says that there is no
    problem. `tally` bounds how many are kept; items of a list and documents of a file can share one.
    """

    origin: Origin
    key: ObjectKey | None = None
    problems: list[Problem] = field(default_factory=list)
    refused: bool = False
    is_clean: bool = True
    tally: Tally = field(default_factory=Tally)
    expressions: Expressions = field(default_factory=Expressions)

    def all_problems(self) -> Problems:
        """Return the problems that were kept, and of each kind how many more there are."""
        return (*self.problems, *self.tally.rest(self.origin, self.key, WITHIN))

    def refuse(self, code: Code, path: str, expected: Words, value: object = _NOTHING) -> None:
        """Note an error that makes the object unusable."""
        self.refused = True
        self._add(code, Severity.ERROR, path, expected, value)

    def refuse_shape(self, code: Code, path: str, expected: Words, value: object) -> None:
        """Note an error that makes the object unusable, and describe the value without quoting it.

        For what is no manifest at all: it may be anything, such as a password in the wrong file.
        """
        self.refused = True
        if self._is_kept(code, Severity.ERROR):
            self._keep(code, Severity.ERROR, path, expected, shape(value))

    def drop(self, code: Code, path: str, expected: Words, value: object = _NOTHING) -> None:
        """Note an error that costs a part of the object; the rest is in force."""
        self._add(code, Severity.ERROR, path, expected, value)

    def warn(self, code: Code, path: str, expected: Words, value: object = _NOTHING) -> None:
        """Note what is in force but probably not meant."""
        self._add(code, Severity.WARNING, path, expected, value)

    def inform(self, code: Code, path: str, expected: Words, value: object = _NOTHING) -> None:
        """Note what was read and is not used."""
        self._add(code, Severity.INFO, path, expected, value)

    def _add(self, code: Code, severity: Severity, path: str, expected: Words, value: object) -> None:
        if self._is_kept(code, severity):
            self._keep(code, severity, path, expected, "" if value is _NOTHING else show(value, path))

    def _is_kept(self, code: Code, severity: Severity) -> bool:
        self.is_clean = False
        # Of kinds that are not read there is one line for each, whoever holds the document counts them.
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
