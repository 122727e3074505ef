"""What can keep the program from starting, each in one sentence for whoever started it."""


class StartupError(Exception):
    """The program cannot start; the message is one sentence that says why and what would be right."""


class StateInUse(StartupError):
    """Another process has the state directory: a server, or a command that issues or revokes."""


class MissingAuthority(StartupError):
    """The state directory has no CA, and whoever opens it may not make one."""


class SettingsError(StartupError):
    """A setting is missing or wrong; the message names it, its value and what would be right."""
