import io

from rich.console import Console

from headrace.cli.consoles import complain, fit


def test_carets_stay_in_sight_whatever_the_width():
    line = "SELECT " + ", ".join(f"column{n}" for n in range(40)) + " FROM s"
    at = line.index("column37")
    for width in range(12, 200, 7):
        text, carets = fit(f"{line}\n{' ' * at}{'^' * 8}", width).split("\n")
        assert len(text) <= width
        shown = text[carets.index("^") : carets.rindex("^") + 1]
        assert shown == "column37"[: len(shown)]
        assert shown.startswith("col")


def test_a_short_line_is_left_alone():
    assert fit("abc\n ^", 20) == "abc\n ^"


def test_a_panel_on_a_terminal(monkeypatch):
    file = io.StringIO()
    monkeypatch.setattr("headrace.cli.consoles.err", lambda: Console(file=file, force_terminal=True, width=50, color_system=None))
    complain("this query cannot run", "x.cql:1:8: what is [this]", "look it up", "SELECT this\n       ^^^^")
    text = file.getvalue()
    assert text.startswith("╭─ this query cannot run ")
    for part in ("what is [this]", "       ^^^^", "hint: look it up"):
        assert part in text
