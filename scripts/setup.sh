#!/bin/bash
# setup.sh VENV: make the virtual environment, install Headrace with everything it needs, and find or install Java.
# What then makes it start sooner is prepared by prepare.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
venv=${1:-.venv}

find_python() {
    local candidate
    for candidate in "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11; do
        if [ -n "$candidate" ] && command -v "$candidate" >/dev/null 2>&1 &&
            "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return 0
        fi
    done
    return 1
}

if ! python=$(find_python); then
    say "Headrace needs Python 3.11 or newer, and there is none on the PATH."
    say "Install one (Debian, Ubuntu: sudo apt-get install python3 python3-venv) and run make again,"
    say "or name one: PYTHON=/path/to/python3 make setup"
    exit 1
fi

# Debian ships Python without what venv needs; the package is called after the version.
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    version=$("$python" -c 'import sys; print(f"python3.{sys.version_info[1]}")')
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        say "this Python cannot make virtual environments; trying to install what is missing"
        if ! apt_install "$version-venv" python3-venv || ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
            say "Install it and run make again (Debian, Ubuntu: sudo apt-get install python3-venv)."
            exit 1
        fi
    fi
    say "making the virtual environment $venv with $("$python" --version)"
    "$python" -m venv --clear "$venv"
fi

say "looking for Java"
java_home=$(scripts/ensure-java.sh)
printf '%s\n' "$java_home" >"$venv/.java-home"
say "Java: $java_home"

say "installing packages (Spark is large: a few minutes the first time)"
# pip would compile all of them, most of which nothing ever loads; what is loaded is compiled then.
if ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile -e '.[dev]'; then
    say "pip could not install the packages listed in pyproject.toml; its message is above. Is there a network?"
    exit 1
fi
