"""Writer of YAML documents, one after another, in a form that kubectl accepts."""

from collections.abc import Iterable, Mapping


def printed(documents: Iterable[Mapping[str, object]]) -> str:
    """Return documents as YAML, with fields in their given order, and repeated values in full."""
    import yaml

    class Plain(yaml.SafeDumper):
        def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - aliases are hard to read
            return True

    return yaml.dump_all(documents, Dumper=Plain, sort_keys=False, explicit_start=True)
