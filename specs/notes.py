"""What a reader has to say about one manifest, collected while it reads on."""

from dataclasses import dataclass, field

from mesh.objects import ObjectKey
from mesh.origins import Origin
from mesh.problems import Problem, Severity
from specs.codes import Code
from specs.show import shape, show

_NOTHING = object()


@dataclass(slots=True)
class Notes:
    """Problems of one manifest; `refused` says that no object may be made of it.

    `refuse` is for what makes the whole object unusable, `drop` for a part that is left out while the
    rest stays in force, `warn` and `inform` for what does not hinder.
    """

    origin: Origin
    key: ObjectKey | None = None
    problems: list[Problem] = field(default_factory=list)
    refused: bool = False

    def refuse(self, code: Code, path: str, expected: str, value: object = _NOTHING) -> None:
        """Note an error that makes the object unusable."""
        self.refused = True
        self._add(code, Severity.ERROR, path, expected, value)

    def refuse_shape(self, code: Code, path: str, expected: str, value: object) -> None:
        """Note an error that makes the object unusable, and describe the value without quoting it.

        For what is no manifest at all: it may be anything, such as a password in the wrong file.
        """
        self.refused = True
        self._note(code, Severity.ERROR, path, expected, shape(value))

    def drop(self, code: Code, path: str, expected: str, value: object = _NOTHING) -> None:
        """Note an error that costs a part of the object; the rest is in force."""
        self._add(code, Severity.ERROR, path, expected, value)

    def warn(self, code: Code, path: str, expected: str, value: object = _NOTHING) -> None:
        """Note what is in force but probably not meant."""
        self._add(code, Severity.WARNING, path, expected, value)

    def inform(self, code: Code, path: str, expected: str, value: object = _NOTHING) -> None:
        """Note what was read and is not used."""
        self._add(code, Severity.INFO, path, expected, value)

    def _add(self, code: Code, severity: Severity, path: str, expected: str, value: object) -> None:
        self._note(code, severity, path, expected, "" if value is _NOTHING else show(value, path))

    def _note(self, code: Code, severity: Severity, path: str, expected: str, quoted: str) -> None:
        self.problems.append(
            Problem(
                code=str(code),
                severity=severity,
                origin=self.origin,
                key=self.key,
                field=path,
                value=quoted,
                expected=expected,
            )
        )
