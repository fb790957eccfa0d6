"""Posting events to a deployment that is served, and listening to its queries.

    from headrace.client import Client

    with Client("http://127.0.0.1:8080", token) as client:
        reply = client.post("payments", {"card": "a", "amount": 10.0, "at": "2026-01-01T00:00:00Z"})
        reply.answers["card_profile"]["total"]

A post is tried again, with the same id, until it is answered or `timeout` is over: so it counts once, whatever happened between.
"""

from headrace.client.asynchronous import AsyncClient
from headrace.client.replies import Answered, Change, Late, Promised, Rejected, ServingError, Unanswered
from headrace.client.synchronous import Client

__all__ = ["Answered", "AsyncClient", "Change", "Client", "Late", "Promised", "Rejected", "ServingError", "Unanswered"]
