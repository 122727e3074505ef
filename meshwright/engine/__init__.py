"""Incremental computation: the cost of a change depends on its readers, which the engine records.

    Table (inputs by key) -> Index, @derived, Firewall -> Observed (values that are to be kept current)

Edits are applied as one change. Every value that read an edited input is marked, and is computed again when
it is requested. A new value that equals the old one ends the propagation. Values are immutable and functions
pure, so that a result never depends on earlier results or on their order.

The package never knows the meaning of a value, waits, reads a clock, or depends on more than the standard
library.
"""
