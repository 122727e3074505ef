"""The etcd of a mesh for commands: from flags, the environment, and the server's config file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import ValidationError, model_validator
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource

from meshwright.cli.errors import CommandFailed
from meshwright.controller.errors import SettingsError
from meshwright.controller.settings.config_file import read_config
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
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic-settings names the parameters
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Set the order of the sources, as for the server."""
        config = init_settings().get("config") or env_settings().get("config")
        # The server's file has settings that this command does not know.
        known = {
            name: value
            for name, value in (read_config(Path(config)) if config else {}).items()
            if name in cls.model_fields
        }
        return init_settings, env_settings, InitSettingsSource(settings_cls, known)


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
