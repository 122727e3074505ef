"""History of pushes: the last responses sent to each proxy, the waves that caused them, and the answers.

The package records and reports, and keeps references instead of copies. Decisions are made elsewhere
(`meshwright.delivery.quarantine`). Read next: `history`.

It stores references only, and never decides which resources are sent.
"""
