"""The `headrace` command for spark-submit, which wants a file: `spark-submit .. submit.py run script.cql --checkpoint ..`.

`python -c "import headrace.submit as s; print(s.__file__)"` says where it is. See docs/cluster.md.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    # Python puts the directory of this file first on its path, and would take our folders for packages of those names.
    here = os.path.dirname(os.path.abspath(__file__))
    if os.path.exists(os.path.join(here, "errors.py")):
        sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    from headrace.cli.main import main

    main()
