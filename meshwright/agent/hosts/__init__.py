"""Names of the services that a proxy can call, in its machine's hosts file.

It never changes a line of another owner.
"""
