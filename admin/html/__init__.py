"""The debug pages as people read them: what a page says as JSON, drawn as HTML. Escaped by construction.

`markup` makes elements, `frame` the whole page, `looks` what each page shows. There are no scripts, and
nothing comes from elsewhere.
"""
