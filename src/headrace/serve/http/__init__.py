"""The outside of a front end: HTTP and WebSocket (docs in `docs/http.md`)."""
