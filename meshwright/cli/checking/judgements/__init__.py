"""Whether a server or a machine of the mesh is well, line by line: judgements of what was seen.

Pure: what is seen, and how long may be looked, is `meshwright.cli.checking`'s; what is judged is a value, and
every judgement ends in a `meshwright.cli.checking.judgements.check.Check`. `server` and `machine` are about
what runs,
`fitness` about what is to run.
"""
