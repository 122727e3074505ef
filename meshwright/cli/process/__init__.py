"""A command as a process: standard streams, signals, environment and exit status.

`exit_status` surrounds every command, and `program` turns errors into a message and a status.
`standard_streams` detects lost output. Long-running commands use `signals`; `server_program` runs the server,
and `handover` replaces the command line by the agent's program.

The package never depends on a command. Read next: `exit_status`, then `standard_streams`.
"""
