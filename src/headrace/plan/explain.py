"""A plan as an indented tree: what each step does, the columns it gives, whether they can be taken back, and what it keeps."""

from __future__ import annotations

from headrace.plan.nodes import STATEFUL, Node, children, retracts, state_bound


def tree(node: Node) -> str:
    """The steps only, the last one first."""
    return "\n".join(_lines(node, facts=False))


def explain(node: Node) -> str:
    """The steps with schema, retraction and state bound."""
    return "\n".join(_lines(node, facts=True))


def _lines(node: Node, *, facts: bool) -> list[str]:
    below = [line for child in children(node) for line in _lines(child, facts=facts)]
    own = [str(node), *(f"    {fact}" for fact in (_facts(node) if facts else ()))]
    return own + [f"  {line}" for line in below]


def _facts(node: Node) -> list[str]:
    found = [f"gives {node.schema}" + (", which can be taken back" if retracts(node) else ", for good")]
    if isinstance(node, STATEFUL):
        found.append(f"keeps {state_bound(node)}")
    return found
