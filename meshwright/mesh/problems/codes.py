"""Base class of the codes of problems."""

import enum
from typing import Self


class ProblemCode(enum.StrEnum):
    """A stable code with its meaning in one line (`doc`); subclasses define the members."""

    doc: str

    def __new__(cls, value: str, doc: str) -> Self:
        """Make a member with the code as value, and with the meaning as `doc`."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.doc = doc
        return member
