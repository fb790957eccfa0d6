"""The kinds of step that keep state, a folder each. None knows another."""
