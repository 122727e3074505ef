"""`meshwright check` and `meshwright agent check`: observations with a time limit, and judgements.

`server/`, `machine/` and `cluster/` make observations, which are called looks. Each look has its own task or
thread and a time limit, so that one hanging part does not block the others. `judgements/` are pure functions
from an observation to a `Check`, which has a status, the observation in words, and the next step. `printing`
shows the checks.

The package never repairs anything. Read next: `judgements/check`, `timed_looks`, then
`server/running_server`.
"""
