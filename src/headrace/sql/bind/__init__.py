"""Syntax -> plan: names are looked up."""
