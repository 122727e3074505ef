"""Label selectors of Kubernetes: requirements that the labels of an object must all meet."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never


class SelectorOperator(enum.StrEnum):
    """Operators of `matchExpressions`."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


@dataclass(frozen=True, slots=True, order=True)
class LabelRequirement:
    """One requirement about the label `key`; `values` are sorted, and empty for (DOES_NOT_)EXIST(S)."""

    key: str
    operator: SelectorOperator
    values: tuple[str, ...] = ()

    def fits(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels meet the requirement; an absent label meets NOT_IN, as in Kubernetes."""
        match self.operator:
            case SelectorOperator.IN:
                return labels.get(self.key) in self.values
            case SelectorOperator.NOT_IN:
                return labels.get(self.key) not in self.values
            case SelectorOperator.EXISTS:
                return self.key in labels
            case SelectorOperator.DOES_NOT_EXIST:
                return self.key not in labels
            case _ as never:
                assert_never(never)


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A label selector; without requirements it selects every object.

    A pair of `matchLabels` is the requirement that the label is IN its one value.
    """

    requirements: tuple[LabelRequirement, ...] = ()

    def fits(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels meet all requirements."""
        return all(requirement.fits(labels) for requirement in self.requirements)
