"""The control plane's own namespace."""

from collections.abc import Mapping
from typing import Final

HOME: Final = "meshwright-system"
"""The control plane's own namespace, where it does not run in a Pod that says which."""


def home(environment: Mapping[str, str]) -> str:
    """Return the control plane's own namespace: its Pod's, as the manifest of the Pod tells it."""
    return environment.get("POD_NAMESPACE") or HOME
