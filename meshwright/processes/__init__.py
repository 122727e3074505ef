"""External programs run as commands: started, waited for, and killed with everything they have started.

The agent runs Envoy and separate Python processes, and the Kubernetes client runs exec plug-ins. A program
may hang, start children or print without end, and must not block or fill the caller. `command` is the only
module: `run` bounds the time and the output of a command, and ends its whole session.

This package does not know the programs, does not parse their output, and does not supervise programs that
keep running.
"""
