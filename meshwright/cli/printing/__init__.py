"""Output for terminals and files: tables, lines and JSON.

`responses` prints the server's JSON, `table` shows the JSON as tables, and `lines` prints plain lines.
`table` and `lines` escape control characters and line feeds, because text from other people can contain them.
`files` writes files in one step.

The package never sends a request to a server.
"""
