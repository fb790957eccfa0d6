"""`headrace demo`: an attack that every hopping window misses, and late arrivals that are counted right; or stolen books."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from headrace.cli.consoles import out
from headrace.cli.demo import fraud_data as data
from headrace.cli.demo.fraud_data import Payment
from headrace.cli.demo.fraud_picture import Facts, draw
from headrace.cli.demo.scripts import fraud, show, titled
from headrace.cli.demo.theft import theft_demo
from headrace.cli.failures import reported
from headrace.cli.run.command import run_to_the_end
from headrace.errors import InternalError
from headrace.generate import SCHEMAS
from headrace.runs.events import RowsEvent

CARDS = {
    data.EDGE: "5 payments across a full minute",
    data.BURST: "5 payments in one minute",
    data.LATE: "5 payments, one arrives late",
}


class Story(Enum):
    """What can be seen."""

    FRAUD = "fraud"
    PATTERNS = "patterns"


def demo(
    which: Annotated[Story, typer.Argument(help="Which one.")] = Story.FRAUD,
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where data, script and picture go.")] = Path("out/demo"),
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Spark's own logs, and tracebacks.")] = False,
) -> None:
    """Catch a card fraud that every hopping window misses, or stolen books.

    [bold]fraud[/]  The rule of the Railgun paper (section 2.1), on payments that arrive out
    of order: more than 4 payments of a card in 5 minutes. Writes payments as
    CSV files, runs a script on them, runs Spark's own hopping window on the
    same files, shows both side by side, and leaves a picture.

    [bold]patterns[/]  A book that leaves without passing a till, in readings
    that arrive out of order, at three levels of correctness at once: alarms
    at once with apologies, alarms that are sure, alarms that are in order.

    [bold]Afterwards[/]
      headrace run out/demo/fraud.cql
      headrace explain out/demo/fraud.cql
    """
    with reported(verbose):
        folder.mkdir(parents=True, exist_ok=True)
        match which:
            case Story.FRAUD:
                fraud_demo(folder, verbose)
            case Story.PATTERNS:
                theft_demo(folder, verbose)


def fraud_demo(folder: Path, verbose: bool) -> None:
    """Write the payments, run the script and Spark's window on them, check the counts by hand, and tell."""
    rows = data.payments()
    paths = data.write_files(folder / "payments", rows)
    text = fraud(str(folder / "payments" / "*.csv"))
    data_files = f"{len(rows):,} card payments in {len(paths)} files, as they arrived: {folder / 'payments'}"
    show(folder / "fraud.cql", text, data_files)
    found, lost = exact(text, verbose)
    hops = hopping(str(folder / "payments" / "*.csv"))
    verify(rows, found, lost)
    facts = Facts(rows, [(card, at, n) for _, card, at, n in found], hops)
    picture = folder / "fraud.png"
    draw(facts, picture)
    tell(facts, [p for p in rows if p.id in lost], picture)


def exact(text: str, verbose: bool) -> tuple[list[tuple[int, str, int, int]], set[int]]:
    from headrace.sql import parse_script

    alerts: list[tuple[int, str, int, int]] = []
    lost: set[int] = set()

    def collect(event: RowsEvent) -> None:
        if event.query_name == "too_late":
            lost.update(event.rows.column("id").to_pylist())
        else:
            at = event.rows.column("at").cast("int64").to_pylist()
            ids, cards, counts = (event.rows.column(name).to_pylist() for name in ("id", "card", "n"))
            alerts.extend(zip(ids, cards, at, counts, strict=True))

    run_to_the_end(parse_script(text, "fraud.cql"), collect, verbose=verbose)
    return alerts, lost


def hopping(pattern: str) -> list[tuple[int, str, int]]:
    """Spark's own window of the same size with a hop of a minute, over the same files."""
    from headrace.spark.rival import hopping_counts

    return hopping_counts(pattern, SCHEMAS["payments"], data.WINDOW, data.HOP, "card")


def verify(rows: list[Payment], found: list[tuple[int, str, int, int]], lost: set[int]) -> None:
    """Hold the result against a recount by hand. A demo that shows a wrong number is worse than none."""
    counts = data.recount(rows)
    wanted = {row.id: counts[row.id] for row in rows if counts.get(row.id, 0) > data.LIMIT}
    got = {number: n for number, _, _, n in found}
    missing = {row.id for row in rows} - counts.keys()
    if got != wanted or len(found) != len(got) or lost != missing:
        raise InternalError(f"alerts {got} and late rows {sorted(lost)}, but a recount gives {wanted} and {sorted(missing)}")


def tell(facts: Facts, lost: list[Payment], picture: Path) -> None:
    """What each found, which payments, and where the picture is."""
    console = out()
    columns = ("card", "what it does", "Headrace, exact", "Spark, 5 min window, 1 min hop")
    table = titled(f"More than {data.LIMIT} payments of a card in 5 minutes", *columns)
    for card, what in CARDS.items():
        alert, fullest = facts.alert(card), facts.fullest(card)
        ours = Text(f"{alert[1]} at {data.wall(alert[0])}: block", "bold green") if alert else Text("nothing", "red")
        theirs = Text(f"{fullest} at most: ", "bold green" if fullest > data.LIMIT else "bold red")
        table.add_row(card, what, ours, theirs.append("block" if fullest > data.LIMIT else "missed"))
    console.print()
    console.print(table)
    console.print()
    for line in story(facts, lost, picture):
        console.print(Text(line))


def story(facts: Facts, lost: list[Payment], picture: Path) -> list[str]:
    ours = {card for card, _, _ in facts.alerts}
    theirs = {card for _, card, n in facts.hops if n > data.LIMIT}
    lines = [
        f"Headrace blocked {len(ours)}: {', '.join(sorted(ours)) or 'none'}.",
        f"Spark's hopping window found {len(theirs)}: {', '.join(sorted(theirs)) or 'none'}.",
    ]
    for card in sorted(ours - theirs):
        paid = facts.of(card)
        times = ", ".join(data.wall(p.at) for p in paid)
        lines.append(
            f"{card} paid at {times}: {len(paid)} times within 5 minutes, "
            f"but no window on a full minute holds more than {facts.fullest(card)}."
        )
    late = [p for p in facts.of(data.LATE) if p.arrival > p.at]
    lines += [f"{_came(p)}, after those that followed it, and was counted in its place." for p in late]
    lines += [f"{_came(p)}, past the DELAY of 2 minutes: it is in late(payments), not lost." for p in lost]
    return [*lines, f"Every count was checked against a plain recount. The picture: {picture}"]


def _came(p: Payment) -> str:
    return f"{p.card}: the payment of {data.wall(p.at)} arrived at {data.wall(p.arrival)}"
