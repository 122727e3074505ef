"""HTML rendering of the debug pages from the JSON documents of `pages`.

`markup` creates elements and escapes every text, so a name can never become markup. `tables`, `values`,
`forms`, `picture` and `timeline` render parts, `frame` renders the whole page, and `looks` has the layout of
each page. `renderer` is the entry: JSON document in, page out.

One script (`live.js`) refreshes a page, and every page works without the script. A page never loads anything
from another host, and browsers enforce this rule because of `style.SECURITY_HEADERS`.
"""
