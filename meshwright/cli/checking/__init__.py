"""`meshwright check` and `meshwright agent check`: observations with a time limit, and judgements.

`server/`, `machine/` and `cluster/` make observations, each in a task or thread with a time limit, so that
one hanging part does not block the others. `judgements/` are pure functions from an observation to a `Check`,
which has a status, the observation in words, and the next step. `printing` shows the checks.

The package never repairs anything. Read next: `judgements/check`, `timed_looks`, then
`server/running_server`.
"""
