"""Incremental computation: a change runs only the functions that have read a changed input.

    Table (inputs by key) -> Index, @derived, Firewall -> ObservedValues (values wanted from outside)

The engine records the reads of every function, so dependencies are never listed by hand. Edits are applied as
one change, which marks all readers of the edited inputs; a marked value is computed when read. If the new
value equals the old one, the readers do not run. For example, after an edit of a Service that keeps the
number of ports, a function that counts the ports runs again, and its readers do not. Values are immutable and
functions are pure, so a result never depends on earlier computations or their order.

The engine does not know the meaning of the values, does not wait or read a clock, and uses only the standard
library. Read next: `docs/understand/engine.md`, then `derived` (the interface), `graph` (the algorithm) and
`index`.
"""
