"""Validation of an installation's settings before there is a server, with the server's own rules."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from meshwright.controller.settings.error_text import sentence
from meshwright.controller.settings.settings import Settings


class _FromTheChart(Settings):
    """The same settings, read neither from the environment nor from a file of this machine."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - pydantic-settings names the parameters
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read only the given values."""
        return (init_settings,)


def wrong(settings: Mapping[str, object], state: Path) -> str:
    """Return the error in the settings of a chart as a sentence, empty if they are valid.

    `settings` has the scalars of a YAML file as written, so `off` is a word.
    """
    given = {"state": state, **settings}
    try:
        _FromTheChart(**given)  # type: ignore[arg-type] # values are checked by the model itself
    except ValidationError as error:
        return sentence(error, {}, Settings.model_fields).replace(" in the config file", "")
    return ""
