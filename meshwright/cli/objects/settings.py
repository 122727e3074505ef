"""The etcd of a mesh for commands: from flags, the environment, and the server's config file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import ValidationError, model_validator

from meshwright.cli.errors import CommandFailed
from meshwright.controller.errors import SettingsError
from meshwright.controller.settings.error_text import sentence
from meshwright.controller.settings.etcd_fields import EtcdFields
from meshwright.controller.settings.etcd_rules import check_etcd
from meshwright.controller.settings.values import Domain


class EtcdSettings(EtcdFields):
    """The settings of a server that commands for objects need. A config file may have the others too."""

    config: Path | None = None
    trust_domain: Domain = "cluster.local"

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        check_etcd(self, used_by="this command")
        return self

    @classmethod
    def from_file(cls, values: Mapping[str, object]) -> dict[str, object]:
        """Return the settings of etcd alone: the server's file has settings that this command lacks."""
        return {name: value for name, value in values.items() if name in cls.model_fields}


def etcd_settings(flags: Mapping[str, object]) -> EtcdSettings:
    """Return the settings from `flags` (`None`: not given), the environment and the file.

    Raises CommandFailed.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    try:
        return EtcdSettings(**given)  # type: ignore[arg-type] # values are checked by the model itself
    except SettingsError as error:
        raise CommandFailed(error) from error
    except ValidationError as error:
        raise CommandFailed(sentence(error, given, EtcdSettings.model_fields)) from error
