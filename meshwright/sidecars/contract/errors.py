"""Errors of sidecar drivers, and of requests to them."""


class DriverError(Exception):
    """Base class of errors: a fault of sidecar drivers, or of the choice of one."""


class NoDriverError(DriverError):
    """No sidecar driver is registered."""


class DuplicateDriverError(DriverError):
    """Two sidecar drivers have the same name."""


class UnknownDriverError(DriverError):
    """The chosen driver is not registered; the message lists the registered ones."""


class NotADriverError(DriverError):
    """An entry point for a sidecar driver cannot be imported, or is not a driver."""


class CannotStartError(DriverError):
    """A driver's control plane cannot start; the message has the reason in one sentence."""


class CannotPatchError(DriverError):
    """A pod cannot have this driver's sidecar; the message names the field of the pod and the reason."""


class NothingThereError(DriverError):
    """A driver's debug page has no content for the query. Users read the message, which is one sentence."""
