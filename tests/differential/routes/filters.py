"""Random filters of rules and backends: headers, rewrites, redirects, mirrors and CORS."""

from random import Random
from typing import Final

from tests.differential.routes.manifests import Form, backend
from tests.differential.topology import Document

ORIGINS: Final = ("https://shop.example", "https://*.shop.example", "http://shop.example:8080")
_VALUES: Final = ("a", "b", "7", "100%")


def request_headers(random: Random) -> Document:
    """Change the headers that matches and rules of targets look at, and the host."""
    changes = random.choice(
        (
            {"set": [{"name": "x-tag", "value": random.choice(_VALUES)}]},
            {"add": [{"name": "X-Tag", "value": random.choice(_VALUES)}]},
            {"remove": ["x-tag"]},
            {"set": [{"name": "x-set", "value": "new"}], "add": [{"name": "x-other", "value": "7"}]},
            {"set": [{"name": "Host", "value": "set.example"}], "remove": ["X-Other"]},
        )
    )
    return {"type": "RequestHeaderModifier", "requestHeaderModifier": changes}


def response_headers(random: Random, name: str) -> Document:
    """Change the headers of answers, of which only `name` is new, so that levels do not meet."""
    changes: Document = random.choice(
        ({"set": [{"name": name, "value": "new"}]}, {"add": [{"name": name, "value": "more"}]})
    )
    if name == "x-app" and random.random() < 0.3:
        changes = {"remove": ["X-App"]}
    return {"type": "ResponseHeaderModifier", "responseHeaderModifier": changes}


def mirror(random: Random, form: Form) -> Document:
    """Copy all requests, none or some of them."""
    target = backend(random, form)
    target.pop("weight", None)
    content: Document = {"backendRef": target}
    share = random.choice(
        (None, None, {"percent": 100}, {"percent": 0}, {"fraction": {"numerator": 1, "denominator": 2}})
    )
    return {"type": "RequestMirror", "requestMirror": content | (share or {})}


def rewrite(random: Random, prefix: str | None) -> Document:
    """Rewrite the path, the host, or both; with a `prefix` match perhaps this prefix alone."""
    content: Document = {}
    if random.random() < 0.8:
        content["path"] = new_path(random, prefix)
    if not content or random.random() < 0.3:
        content["hostname"] = "new.example"
    return {"type": "URLRewrite", "urlRewrite": content}


def new_path(random: Random, prefix: str | None) -> Document:
    """Replace the whole path, or the matched prefix."""
    if prefix is not None and random.random() < 0.7:
        new = random.choice(("/", "/status", "/books/new", "/books/", "/v2"))
        return {"type": "ReplacePrefixMatch", "replacePrefixMatch": new}
    return {
        "type": "ReplaceFullPath",
        "replaceFullPath": random.choice(("/books/1", "/status", "/", r"/a\1b")),
    }


def redirect(random: Random, prefix: str | None) -> Document:
    """Redirect with any of the fields, perhaps with none."""
    content: Document = {}
    if random.random() < 0.5:
        content["hostname"] = "other.example"
    if random.random() < 0.4:
        content["scheme"] = random.choice(("http", "https"))
    if random.random() < 0.4:
        content["port"] = random.choice((80, 81, 443, 8080, 8443))
    if random.random() < 0.5:
        content["path"] = new_path(random, prefix)
    if random.random() < 0.6:
        content["statusCode"] = random.choice((301, 302, 303, 307, 308))
    return {"type": "RequestRedirect", "requestRedirect": content}


def cors(random: Random) -> Document:
    """Allow some or all origins, perhaps with credentials."""
    methods = random.choice((["*"], ["GET"], ["GET", "PUT"]))
    content: Document = {
        "allowOrigins": ["*"] if random.random() < 0.25 else random.sample(ORIGINS, random.choice((1, 2))),
        "allowMethods": methods,
    }
    if random.random() < 0.5:
        content["allowHeaders"] = random.choice((["*"], ["X-One", "X-Two"]))
    if random.random() < 0.4:
        content["exposeHeaders"] = ["X-App"]
    if random.random() < 0.4:
        content["allowCredentials"] = random.choice((True, False))
    if random.random() < 0.5:
        content["maxAge"] = random.choice((1, 600))
    return {"type": "CORS", "cors": content}


def extension() -> Document:
    """Return a filter that is not carried out."""
    reference = {"group": "example.com", "kind": "Thing", "name": "thing"}
    return {"type": "ExtensionRef", "extensionRef": reference}
