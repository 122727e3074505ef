"""The command line of Meshwright: read arguments, call other packages, print results.

`main` has the commands, one module of `commands/` each. `process/` is everything around a command: standard
streams, signals, environment, exit status. `socket/` sends requests to a running server, and `offline/`
builds a mesh from manifests without a server. The other folders each serve one group of commands, for example
`checking/` serves `meshwright check`.

The package never does work that a program without a terminal could need, because such work belongs to the
packages below. Read next: `main`, `process/exit_status`, then one command such as `commands/explain`. For
users: docs/debug/cli.md.
"""
