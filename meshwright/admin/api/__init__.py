"""The JSON API, `/api/v1`, with documented shapes for programs.

Within a version, fields are only added. It never draws a page, and never changes a decision of the server.
"""
