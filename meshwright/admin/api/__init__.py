"""The JSON API, `/api/v1`: what is asked of the server by programs, in shapes that stay.

Within a version fields are only added. It will never draw a page, or change what the server decides.
"""
