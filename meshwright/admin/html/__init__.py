"""The debug pages in HTML: the JSON of a page, drawn for a browser. Text is escaped by construction.

`markup` makes elements, `frame` makes the whole page, and `looks` has the layout of each page. One script
(`live.js`) refreshes a page, and every page works without it. A page never loads anything from another host.
"""
