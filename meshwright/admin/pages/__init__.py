"""Debug pages as JSON documents: functions of the state of the server.

`routes` is the table of pages, `handlers` maps each request to its function, and `site` serves the result as
JSON or HTML. The folders have the functions by subject: `proxies`, `mesh` and `calls`. The JSON API and
commands such as `meshwright explain` use the same functions. A page never contains a private key.
"""
