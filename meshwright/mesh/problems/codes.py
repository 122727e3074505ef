"""What the codes of problems have in common, wherever the problem is found."""

import enum
from typing import Self


class ProblemCode(enum.StrEnum):
    """A stable code and what it means in one line (`doc`); members are made by subclasses."""

    doc: str

    def __new__(cls, value: str, doc: str) -> Self:
        """Make a member that is its code and carries its meaning."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.doc = doc
        return member
