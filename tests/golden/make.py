"""Makes the checkpoint that lies here for a format, with the version of Headrace that is on the path.

PYTHONPATH=<a checkout>/src python make.py /tmp/golden/format-N, with 0.csv and 1.csv of p in a folder p there. What it leaves in
`state` is kept here, but for sums (*.crc) and the lock; tests put their own paths in the place of that one.
"""

import sys
from pathlib import Path


def main(root: Path) -> None:
    """Read all there is, and stop."""
    from headrace.spark.run import start_run
    from headrace.spark.session import local_session
    from headrace.sql import parse_script

    text = Path(__file__).with_name("script.cql").read_text().replace("ROOT", str(root))
    run = start_run(local_session(cores=1), parse_script(text), {}, checkpoint=str(root / "state"), follow=True, buckets=1)
    assert run.query is not None
    run.query.processAllAvailable()
    run.stop()
    assert run.error is None, run.error


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
