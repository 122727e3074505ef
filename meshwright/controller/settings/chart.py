"""Validation of the chart's server settings before the server is installed, with the server's own rules."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from meshwright.controller.settings.error_text import sentence
from meshwright.controller.settings.settings import Settings


class _FromTheChart(Settings):
    """The server's settings, read only from the chart: not from the environment or files of this machine."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - pydantic-settings names the parameters
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read only the values passed to the constructor."""
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
