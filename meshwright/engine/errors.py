"""What can be wrong with a program of derived values."""


class CycleError(Exception):
    """A derived value needs itself; the message names every value on the way round."""


class OrderError(Exception):
    """An index or a firewall reads one that was made after it; the message names both."""


class BusyError(Exception):
    """Inputs were to be changed from within a computation."""
