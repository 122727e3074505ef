"""Incremental computation: a change costs what read it, found by recording reads, never listed by hand.

    Table (inputs by key) -> Index, @derived, Firewall -> Observed (what somebody outside wants kept current)

Edits are applied as one change; whatever read an edited input is marked, and brought up to date when it is
asked for. A recomputed value that equals the old one stops there: nothing that read it runs. Values are
immutable and functions pure: what is computed never depends on what was computed before, or in which order.

It will never know what is computed, wait, read a clock, or depend on more than the standard
library.
"""
