"""Names of the services that a proxy can call, in its machine's hosts file."""
