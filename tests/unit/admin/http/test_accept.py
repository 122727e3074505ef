"""`Accept` as RFC 9110 has it: who would rather have a page than JSON."""

import time

import pytest
from aiohttp.test_utils import make_mocked_request

from meshwright.admin.http.accept import prefers_html


@pytest.mark.parametrize(
    ("accept", "is_page"),
    [
        # curl, programs, and who says nothing.
        (None, False),
        ("", False),
        ("*/*", False),
        ("application/json", False),
        ("application/json, text/plain, */*", False),
        ("text/plain", False),
        # Browsers.
        ("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", True),
        ("text/html, application/xhtml+xml, */*", True),
        ("text/html", True),
        ("text/*", True),
        # Weights (12.4.2): what is weighed higher; 0 is "not acceptable".
        ("text/html;q=0", False),
        ("text/html;q=0.0, */*", False),
        ("application/json, text/html;q=0.5", False),
        ("application/json;q=0.2, text/html;q=0.5", True),
        ("text/html;q=0.3, */*;q=0.5", False),
        ("*/*, application/json;q=0.5", True),
        ("text/*, application/json", False),
        ("text/*;q=0.4, text/html;q=0.9, application/json;q=0.5", True),
        ("text/html;q=0.4, text/*;q=0.9, application/json;q=0.5", False),
        ("text/html;q=nothing, application/json;q=0.1", False),
        ("text/html;q=7, application/json;q=0.1", False),
        # Types, names of parameters and charsets have no case (8.3.1); space is optional (5.6.6).
        ("TEXT/HTML", True),
        ("Text/Html ; Q=0.9 , Application/JSON ; Q=0.1", True),
        ("APPLICATION/JSON, TEXT/HTML;Q=0.1", False),
        # Parameters narrow a range to what has them.
        ("text/html;charset=UTF-8, application/json;q=0.9", True),
        ('text/html;charset="utf-8", application/json;q=0.9', True),
        ("text/html;level=1, application/json;q=0.9", False),
        ("text/html;level=1, text/html;q=0.5, application/json;q=0.4", True),
        ('application/json;a="text/html, text/html", text/plain', False),
        # What only has it in its name.
        ("text/htmlx", False),
        ("application/vnd.a+text/html", False),
        (",,text/html,", True),
    ],
)
def test_who_would_rather_have_a_page(accept: str | None, is_page: bool) -> None:
    """By RFC 9110, 12.5.1; where it makes no difference it is JSON."""
    headers = {} if accept is None else {"Accept": accept}
    assert prefers_html(make_mocked_request("GET", "/", headers=headers)) is is_page


@pytest.mark.parametrize(
    "accept", ["text/html;" * 800, '"' * 8000, "a/b;" + " ;" * 4000, 'a/b;a="' + '\\"' * 4000]
)
def test_a_long_line_is_read_at_once(accept: str) -> None:
    """Whatever a line of 8 kB holds, which is as long as there is: the event loop does not wait."""
    request = make_mocked_request("GET", "/", headers={"Accept": accept})
    began = time.process_time()
    prefers_html(request)
    assert time.process_time() - began < 0.5
