"""Problems with objects: their shape, codes, bounds and suggestions.

A mistake in a manifest must reach the person who can correct it, in the same words everywhere: in the log, in
the API, in the CLI and in an object's status. The package never finds a problem: readers and lint do.
- `problem`: one problem, its order and its log line. Start here.
- `codes`: base of the enumerations of stable codes.
- `tally`: bound on the number of problems of one kind.
- `spelling`: suggestions for unknown words.
"""
