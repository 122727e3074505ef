"""Config file: a YAML mapping of settings, parsed like a manifest."""

from pathlib import Path

from meshwright.controller.errors import SettingsError
from meshwright.providers.text.documents import documents
from meshwright.specs.codes import Code


def read_config(path: Path) -> dict[str, object]:
    """Read a config file; raise SettingsError with file and line if it is not a mapping of settings.

    Scalars stay text as written, as in the environment, because only the setting knows its type. So `off` is
    a word for a setting with words, and False for a switch.
    """
    document = only_document(path, "the config file", as_text=True)
    if not isinstance(document, dict | None):
        raise SettingsError(
            f"the config file {path} must be a mapping of settings to values, for example `log_level: debug`"
        )
    return _named(path, document or {})


def only_document(path: Path, subject: str, *, as_text: bool = False) -> object:
    """Return the only document of a YAML file, `None` for an empty file; raise SettingsError.

    The error calls the file `subject`, and names path and line. With `as_text` scalars stay as written.
    """
    try:
        return only_in(path.read_text("utf-8-sig"), f"{subject} {path}", as_text=as_text)
    except OSError as error:
        raise SettingsError(f"cannot read {subject} {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"{subject} {path} is not YAML: the byte at offset {error.start} is not UTF-8"
        ) from error


def only_in(text: str, subject: str, *, as_text: bool = False) -> object:
    """Return the only document of a text, `None` if empty.

    Raise SettingsError, which calls the text `subject`.
    """
    result = documents(text, as_text=as_text)
    if len(result) > 1:
        raise SettingsError(
            f"{subject} must have one document, but line {result[1].line} begins a second one"
        )
    for fault in result[0].faults if result else ():
        wrong = "is not YAML: line" if fault.code is Code.BAD_SYNTAX else "is wrong in line"
        raise SettingsError(f"{subject} {wrong} {fault.line}: {fault.expected}")
    return result[0].value if result else None


def _named(path: Path, document: dict[str, object]) -> dict[str, object]:
    """Return the settings by name; names may be written with hyphens."""
    settings: dict[str, object] = {}
    for name, value in document.items():
        known = name.replace("-", "_")
        if known in settings:
            raise SettingsError(
                f"the config file {path} has the setting {known} twice, with - and with _: remove one"
            )
        settings[known] = value
    return settings
