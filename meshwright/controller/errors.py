"""Errors that prevent the start of the program, each one sentence for the operator."""


class StartupError(Exception):
    """The program cannot start; the message is one sentence with the cause and the remedy."""


class StateInUse(StartupError):
    """Another process uses the state directory: a server, or a command that issues or revokes."""


class MissingAuthority(StartupError):
    """The state directory lacks a CA, and the caller may not create one."""


class SettingsError(StartupError):
    """A setting is missing or invalid; the message names the setting, the value, and a valid value."""
