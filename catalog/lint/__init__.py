"""Lint: problems between objects each valid alone, for example a TrafficSplit to a missing Service.

Lint never changes the policy in force.

`problems.Linter` has a function for each kind of object. The functions are derived values of the view, so a
change of an object checks only the dependent objects. The folders `smi`, `osm`, `own` and `services` have the
checks, `codes` the stable codes, `wording` the common parts of texts, and `budget` the limits of the work for
one object. Start reading with `problems`.
"""
