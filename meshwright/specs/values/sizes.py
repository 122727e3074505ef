"""Sizes in bytes, as quantities of Kubernetes such as 64Ki."""

import re
from typing import Final

from meshwright.specs.fields import Fields
from meshwright.specs.values.quantities import read_quantity

SIZE_TEXT: Final = "[0-9]{1,10}(k|M|G|Ki|Mi|Gi)?"
"""Pattern of a size: a whole number of bytes, or of a unit."""

_SIZE: Final = re.compile(SIZE_TEXT)


def size(fields: Fields, name: str, low: int, high: int, rule: str) -> int | None:
    """Return a size from `low` to `high` bytes, both included, None if absent; `rule` is the error text."""
    value = fields.raw(name)
    if value is None:
        return None
    # In Python a bool is an int, so `true` would be read as one byte.
    is_plain = isinstance(value, str | int) and not isinstance(value, bool)
    number = read_quantity(str(value)) if is_plain and _SIZE.fullmatch(str(value)) else None
    if number is None or not low <= number <= high:
        fields.wrong(name, rule)
        return None
    return int(number)
