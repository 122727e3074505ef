"""The control plane's own namespace."""

from collections.abc import Mapping
from typing import Final

HOME: Final = "meshwright-system"
"""The default for processes outside of a Pod."""


def home(environment: Mapping[str, str]) -> str:
    """Return the control plane's own namespace, from the variable `POD_NAMESPACE` in the Pod's manifest."""
    return environment.get("POD_NAMESPACE") or HOME
