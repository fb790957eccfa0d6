"""Two plain pages for people: where everything is, and how events are posted."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from headrace.plan.schema import Schema
from headrace.serve.deployment import Deployment

_STYLE = (
    "body{font:16px/1.5 system-ui;max-width:50em;margin:3em auto;padding:0 1em}pre{background:#f4f4f4;padding:1em;overflow:auto}"
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
LINKS = {
    "/docs": "how to post events, and what comes back",
    "/openapi.json": "the same for programs",
    "/health": "whether it lives",
    "/ready": "whether all units are there",
    "/metrics": "for Prometheus",
}
_HOW = """<h2>Posting</h2>
<pre>curl --json '{{..}}' {url}/streams/{stream}/events</pre>
<p>The reply has <code>answers</code>, by query: the row of this event, or a list of what it made with others; and
<code>earlier</code>, what it changed of rows of events before it (<code>-</code> takes back, <code>+</code> says). An event
that came too late has <code>late</code> instead, and one that does not fit its stream <code>rejected</code> (422). With a header
<code>Idempotency-Key</code>, or <code>?id=</code>, a post can be tried again, and finds its first answer.</p>
<p>An array, or a line for each event (<code>application/x-ndjson</code>), is answered event by event, in order.</p>
<p>A WebSocket at <code>/ws</code> takes <code>{{"post": "{stream}", "id": "1", "event": {{..}}}}</code> and
<code>{{"subscribe": ["{query}"]}}</code>.</p>
<p>Where there are tokens, every request has one: <code>Authorization: Bearer ..</code></p>"""


def front_page(deployment: Deployment) -> bytes:
    items = "".join(f'<li><a href="{path}">{path}</a>: {text}</li>' for path, text in LINKS.items())
    return _page(deployment.name, f"<ul>{items}</ul>{_columns('Streams', _streams(deployment))}")


def docs_page(deployment: Deployment, url: str) -> bytes:
    queries = [(f.query.name, f.query.node.schema) for f in deployment.finishes()]
    stream, query = _streams(deployment)[0][0], queries[0][0]
    how = _HOW.format(url=escape(url), stream=escape(stream), query=escape(query))
    return _page(deployment.name, how + _columns("Streams", _streams(deployment)) + _columns("Queries", queries))


def _streams(deployment: Deployment) -> list[tuple[str, Schema]]:
    return [(s.name, s.schema) for s in deployment.streams]


def _columns(title: str, of: Iterable[tuple[str, Schema]]) -> str:
    rows = "".join(f"<li><code>{escape(name)} {escape(str(schema))}</code></li>" for name, schema in of)
    return f"<h2>{title}</h2><ul>{rows}</ul>"


def _page(title: str, body: str) -> bytes:
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    return f"<!doctype html><html lang=en><head>{head}</head><body><h1>{escape(title)}</h1>{body}</body></html>".encode()
