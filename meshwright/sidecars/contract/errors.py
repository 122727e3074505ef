"""What can be wrong with drivers, and with what is asked of them."""


class DriverError(Exception):
    """Something is wrong with the drivers, or with the choice of one."""


class NoDriverError(DriverError):
    """No driver is registered at all."""


class DuplicateDriverError(DriverError):
    """Two drivers have one name."""


class UnknownDriverError(DriverError):
    """The driver chosen is not registered; the message lists those that are."""


class NotADriverError(DriverError):
    """An entry point leads to something that is no driver, or cannot be imported."""


class CannotStartError(DriverError):
    """A driver's control plane cannot start: the message says why, in one sentence."""


class CannotPatchError(DriverError):
    """A pod cannot have this driver's sidecar: the message names the pod's field, and says why."""


class NothingThereError(DriverError):
    """A driver's debug page is asked for what is not there: the message says so, in one sentence."""
