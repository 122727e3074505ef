"""Commands: other programs, started with a time limit, and ended with all their children.

The agent runs Envoy and separate Python processes, and the Kubernetes client runs exec plug-ins. A program
may hang, start children or print without end, and must not block or fill the caller. For example, a plug-in
may wait for input from a terminal. `command` is the only module: `run` bounds the time and the output of a
command, and ends the whole session of the command.

The package never knows the purpose of a program, and never runs a long-lived one.
"""
