"""Settings of an installation, judged before there is a server: as the server will when it starts."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from meshwright.controller.settings.error_text import sentence
from meshwright.controller.settings.settings import Settings


class _FromTheChart(Settings):
    """The same settings, of which neither the environment nor a file of this machine says anything."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - pydantic-settings names the parameters
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take what the chart says, and nothing else."""
        return (init_settings,)


def wrong(settings: Mapping[str, object], state: Path) -> str:
    """Return what is wrong with the settings of a chart as a sentence; empty where nothing is.

    `settings` are the scalars of a YAML file as they are written, so that `off` is a word.
    """
    given = {"state": state, **settings}
    try:
        _FromTheChart(**given)  # type: ignore[arg-type] # values are checked by the model itself
    except ValidationError as error:
        return sentence(error, {}, Settings.model_fields).replace(" in the config file", "")
    return ""
