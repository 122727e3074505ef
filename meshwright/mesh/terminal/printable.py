r"""Foreign text in a form that is safe for a terminal: it cannot move the cursor or look like another line.

Names of files and objects, messages of proxies, paths of requests and answers of servers can hold any
character. A terminal takes some of them for commands (ESC, and the C1 controls such as U+009B), and shows
text in another order after others (U+202E). Each of these is shown as an escape, as `repr` does: ESC as
`\x1b`.
"""


def printable(text: str) -> str:
    """Return text with every unprintable character escaped, except newlines."""
    if text.replace("\n", "").isprintable():
        return text
    return "\n".join(map(on_one_line, text.split("\n")))


def on_one_line(text: str) -> str:
    """Return text with every unprintable character escaped, including newlines."""
    if text.isprintable():
        return text
    return "".join(item if item.isprintable() else _escaped(item) for item in text)


def _escaped(character: str) -> str:
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
