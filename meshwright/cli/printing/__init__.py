"""Output for terminals and files: tables, lines and JSON.

`responses` prints the server's JSON, `table` shows it as tables, and `lines` prints plain lines. Text from
other people can contain control characters and line feeds: all three escape them. `files` writes files in one
step.

The package never sends a request to a server.
"""
