"""Errors of the computation engine, each caused by a mistake in the functions of derived values."""


class CycleError(Exception):
    """Error for a derived value that depends on itself; the message names all values of the cycle."""


class OrderError(Exception):
    """Error for an index or firewall that reads a later one; the message names both."""


class BusyError(Exception):
    """Error for a change of inputs while a derived value is being computed."""
