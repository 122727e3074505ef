"""JSON API for programs below `/api/v1`, with documented shapes.

`routes` is the table of all paths. Each entry has a shape (a JSON Schema), and every answer is reduced to the
shape before sending. `openapi` generates the documentation from the same table, so documentation and answers
agree. Within a version, fields are only added. `events` and `tap` are streams, and `trial` is the only POST;
none of them changes a decision of the server. The package never renders HTML.
"""
