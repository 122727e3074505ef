"""Tests of the `Accept` header (RFC 9110): the choice between HTML and JSON."""

import time

import pytest
from aiohttp.test_utils import make_mocked_request

from meshwright.admin.http.accept import prefers_html


@pytest.mark.parametrize(
    ("accept", "is_page"),
    [
        # curl, programs, and requests without the header.
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
        # Weights (12.4.2): the higher weight is preferred; 0 is "not acceptable".
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
        # Parameters narrow a range to types with the same parameters.
        ("text/html;charset=UTF-8, application/json;q=0.9", True),
        ('text/html;charset="utf-8", application/json;q=0.9', True),
        ("text/html;level=1, application/json;q=0.9", False),
        ("text/html;level=1, text/html;q=0.5, application/json;q=0.4", True),
        ('application/json;a="text/html, text/html", text/plain', False),
        # Types that only contain the name.
        ("text/htmlx", False),
        ("application/vnd.a+text/html", False),
        (",,text/html,", True),
    ],
)
def test_html_is_sent_only_if_accept_prefers_it(accept: str | None, is_page: bool) -> None:
    """`Accept` chooses between HTML and JSON (RFC 9110, 12.5.1); without a preference the answer is JSON."""
    headers = {} if accept is None else {"Accept": accept}
    assert prefers_html(make_mocked_request("GET", "/", headers=headers)) is is_page


@pytest.mark.parametrize(
    "accept", ["text/html;" * 800, '"' * 8000, "a/b;" + " ;" * 4000, 'a/b;a="' + '\\"' * 4000]
)
def test_long_accept_header_is_parsed_quickly(accept: str) -> None:
    """A header of 8 kB, about the longest one, takes less than 0.5 s of CPU time.

    Parsing holds the event loop.
    """
    request = make_mocked_request("GET", "/", headers={"Accept": accept})
    began = time.process_time()
    prefers_html(request)
    assert time.process_time() - began < 0.5
