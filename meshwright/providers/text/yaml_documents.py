"""Documents as text: YAML, one after another, as kubectl takes it."""

from collections.abc import Iterable, Mapping


def printed(documents: Iterable[Mapping[str, object]]) -> str:
    """Return documents in the order of their fields; what stands in them twice is written twice."""
    import yaml

    class Plain(yaml.SafeDumper):
        def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - an alias is for nobody's eyes
            return True

    return yaml.dump_all(documents, Dumper=Plain, sort_keys=False, explicit_start=True)
