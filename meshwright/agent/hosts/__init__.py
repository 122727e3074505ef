"""Names of the services that a proxy can call, in its machine's hosts file.

The package never changes a line of another owner.
"""
