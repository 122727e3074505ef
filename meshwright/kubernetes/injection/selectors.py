"""Label selectors of Kubernetes (meta/v1, LabelSelector)."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, one_of


class Operator(enum.StrEnum):
    """Operator of a requirement in a label selector, for example `NotIn`."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement of a label selector for one label; `values` belong to IN and NOT_IN."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels meet the requirement. A missing label meets every NOT_IN."""
        match self.operator:
            case Operator.IN:
                return labels.get(self.key) in self.values
            case Operator.NOT_IN:
                return labels.get(self.key) not in self.values
            case Operator.EXISTS:
                return self.key in labels
            case Operator.DOES_NOT_EXIST:
                return self.key not in labels


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Requirements for labels that must all be met; there is at least one requirement."""

    requirements: tuple[Requirement, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels meet all requirements."""
        return all(requirement.holds(labels) for requirement in self.requirements)

    def __str__(self) -> str:
        return ", ".join(map(_written, self.requirements))


def required(selector: Mapping[str, Any] | None) -> tuple[Requirement, ...]:
    """Return the requirements of a label selector from an API server; None has no requirements."""
    terms = selector or {}
    labels = [
        Requirement(key, Operator.IN, (value,)) for key, value in (terms.get("matchLabels") or {}).items()
    ]
    return (
        *labels,
        *(
            Requirement(
                expression["key"],
                Operator(expression["operator"]),
                tuple(expression.get("values") or ()),
            )
            for expression in terms.get("matchExpressions") or ()
        ),
    )


def read(fields: Fields) -> LabelSelector:
    """Parse a label selector of a configuration, and note a fault if it selects everything."""
    requirements = [Requirement(key, Operator.IN, (value,)) for key, value in fields.pairs("matchLabels")]
    for section in fields.sections("matchExpressions"):
        if not section.has("operator"):
            section.wrong("operator", one_of(tuple(Operator)), Code.MISSING)
        operator = Operator(section.choice("operator", tuple(Operator), Operator.IN))
        values = section.texts("values")
        if bool(values) != (operator in (Operator.IN, Operator.NOT_IN)):
            section.wrong(
                "values", "must be given for the operators In and NotIn, and left out for all others"
            )
        requirements.append(
            Requirement(section.required_text("key", "must be the name of a label"), operator, values)
        )
        section.close()
    fields.close()
    if not requirements:
        fields.wrong(
            "matchLabels",
            "must have matchLabels or matchExpressions, because an empty selector would select every pod",
        )
    return LabelSelector(tuple(requirements))


def _written(requirement: Requirement) -> str:
    match requirement.operator:
        case Operator.IN | Operator.NOT_IN:
            word = "=" if requirement.operator is Operator.IN else "!="
            return f"{requirement.key}{word}{'|'.join(requirement.values)}"
        case Operator.EXISTS:
            return requirement.key
        case Operator.DOES_NOT_EXIST:
            return f"!{requirement.key}"
