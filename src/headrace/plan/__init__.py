"""The plan: frozen nodes, valid by construction, that say what a query means and nothing about how it runs."""
