"""Sources of settings, in one order for the server and for commands: flags, environment, config file."""

from collections.abc import Mapping
from pathlib import Path

from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from meshwright.controller.settings.config_file import read_config
from meshwright.controller.settings.error_text import ENVIRONMENT_PREFIX


class FileSettings(BaseSettings):
    """Settings with a field `config`, which names the config file; a flag or the environment sets it."""

    # The validator is built when settings are read, so that base classes need none.
    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        defer_build=True,
    )

    @classmethod
    def from_file(cls, values: Mapping[str, object]) -> dict[str, object]:
        """Return the values of the config file that these settings take; others are an error."""
        return dict(values)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic-settings names the parameters
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Set the order of the sources."""
        # This one variable alone: to read all of them twice takes most of the time of reading settings.
        variable, *_ = env_settings.get_field_value(settings_cls.model_fields["config"], "config")
        config = init_settings().get("config") or variable
        values = cls.from_file(read_config(Path(config)) if config else {})
        return init_settings, env_settings, InitSettingsSource(settings_cls, values)
