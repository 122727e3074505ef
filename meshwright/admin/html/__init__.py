"""The debug pages as people read them: what a page says as JSON, drawn as HTML. Escaped by construction.

`markup` makes elements, `frame` the whole page, `looks` what each page shows. There is one script, which
keeps a page current and which no page needs; nothing comes from elsewhere.
"""
