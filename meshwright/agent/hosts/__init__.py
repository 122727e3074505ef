"""Names of callable services, in the hosts file of the proxy's machine.

The package never changes a line of another owner.
"""
