"""`headrace serve`: answer every event that is posted, by a script."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.consoles import say
from headrace.cli.failures import reported
from headrace.cli.run.interrupts import Interrupts
from headrace.cli.scripts import load

COME_S = 60.0  # until all units are there
LOOK_S = 0.2


def serve(
    script: Annotated[str, typer.Argument(help="The script to serve.", metavar="SCRIPT")],
    port: Annotated[int, typer.Option("--port", "-p", min=0, max=65_535, help="Where to listen; 0: any that is free.")] = 8080,
    host: Annotated[
        str, typer.Option("--host", help="The address to listen at; beyond this machine it needs --tokens.")
    ] = "127.0.0.1",
    units: Annotated[
        int, typer.Option("--units", "-u", min=1, metavar="N", help="Processor units: Spark tasks of one thread each.")
    ] = 2,
    partitions: Annotated[
        int, typer.Option("--partitions", min=1, metavar="N", help="Of each topic: all the units that can ever share it.")
    ] = 8,
    folder: Annotated[
        Path, typer.Option("--dir", "-d", metavar="DIR", help="Where the log and the state lie, and are gone on with.")
    ] = Path("served"),
    log: Annotated[
        str | None, typer.Option("--log", metavar="LOG", help="Another log: a folder, or kafka://host:port,host:port.")
    ] = None,
    store: Annotated[
        str | None, typer.Option("--store", metavar="PLACE", help="Another store: a folder, or s3://.., hdfs://..")
    ] = None,
    topic: Annotated[
        list[str] | None, typer.Option("--topic", metavar="STREAM=KEYS", help="By which keys events are parted: payments=card.")
    ] = None,
    tokens: Annotated[Path | None, typer.Option("--tokens", help="The file that [bold]headrace token[/] writes.")] = None,
    cert: Annotated[Path | None, typer.Option("--cert", help="TLS: the certificate, in PEM.")] = None,
    key: Annotated[Path | None, typer.Option("--key", help="TLS: its key, in PEM.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Spark's own logs, and tracebacks.")] = False,
) -> None:
    r"""Serve a script: every event that is posted is answered with all metrics of all its entities.

    Events go through a log of their own, and units reply to each; what was
    answered is never contradicted, only corrected under EMIT CHANGES. Killed
    units, and a killed front end, go on from where log and state are. SOURCE
    and INTO of the script are for [bold]headrace run[/]: here events are posted, and
    answered to who posted them.

    [bold]Examples[/]
      headrace serve profiles.cql
      curl --json '{"id": 1, "card": "a", "amount": 10, "at": "2026-01-01T12:00:00Z"}' \
        http://127.0.0.1:8080/streams/payments/events
      headrace serve profiles.cql --log kafka://127.0.0.1:9092 --units 4
    """
    with reported(verbose), Interrupts() as interrupts:
        plan = load(script)
        chosen = dict(_topic(text) for text in topic or ())
        from headrace.serve.deployment import deploy
        from headrace.serve.http.options import Options
        from headrace.serve.http.server import HttpServer
        from headrace.serve.serving import Serving
        from headrace.spark.serving import SparkUnits, units_session

        deployment = deploy(plan, Path(script).stem or "headrace", partitions, chosen=chosen)
        say(_told(deployment))
        serving = Serving(deployment, log or str(folder / "log"), store or str(folder / "store"))
        options = Options(host, port, cert, key, tokens, post_on_thread=bool(log and log.startswith("kafka://")))
        with HttpServer(serving.front, options, serving.lacking, say) as server:
            hosted = SparkUnits(units_session(units, quiet=not verbose), serving.config, units)
            try:
                serving.wait_for_units(units, COME_S)
                say(f"listening on {server.url}; Ctrl-C ends it")
                interrupts.running = True
                _wait(server, interrupts)
            finally:
                server.stop()
                serving.stop()
                hosted.stop()
                serving.close()
                say("stopped; start it again to go on")


def _wait(server: object, interrupts: Interrupts) -> None:
    """Until somebody interrupts; a front end that cannot go on raises why."""
    from headrace.serve.http.server import HttpServer

    assert isinstance(server, HttpServer)
    while not interrupts.asked:
        try:
            server.wait(LOOK_S)
        except TimeoutError:
            continue
        return


def _told(deployment: object) -> str:
    """Which topics there are, and who shares them."""
    from headrace.serve.deployment import Deployment

    assert isinstance(deployment, Deployment)
    lines = []
    for t, topic in enumerate(deployment.topics):
        asked = ", ".join(q for s in topic.stages for q in deployment.stage(s).queries)
        lines.append(f"topic {deployment.log_topic(t)}: {topic.partitions(deployment.partitions)} partitions; {asked}")
    return "\n".join(lines)


def _topic(text: str) -> tuple[str, list[str]]:
    stream, found, keys = text.partition("=")
    if not found or not keys:
        raise typer.BadParameter(f"expected STREAM=KEY,KEY, found {text!r}", param_hint="--topic")
    return stream, [key.strip() for key in keys.split(",")]
