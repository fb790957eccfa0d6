#!/bin/bash
# Print the home of a Java runtime that Spark can use (17 or newer); install one if there is none and apt can.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

LEAST=17

# The major version of a java binary: 17 for "17.0.9", 8 for "1.8.0_392"; nothing if it does not run.
version_of() {
    "$1" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]\{1,\}\).*/\2/p' | head -n 1
}

# Spark asks for a module that cut-down runtimes leave out.
usable() {
    [ -x "$1" ] || return 1
    local version modules
    version=$(version_of "$1") || true
    [ -n "$version" ] && [ "$version" -ge "$LEAST" ] || return 1
    modules=$("$1" --list-modules 2>/dev/null) || return 1
    [[ $modules == *jdk.incubator.vector* ]]
}

home_of() {
    dirname "$(dirname "$(readlink -f "$1")")"
}

find_java() {
    local candidate
    for candidate in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)" /usr/lib/jvm/*/bin/java; do
        if [ -n "$candidate" ] && usable "$candidate"; then
            home_of "$candidate"
            return 0
        fi
    done
    return 1
}

find_java && exit 0
say "no Java runtime of version $LEAST or newer; trying to install one"
if apt_install openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless && find_java; then
    exit 0
fi
say "Spark needs a Java runtime, version $LEAST or newer, and none could be installed from here."
say "Install one and run make again:"
say "  Debian, Ubuntu:  sudo apt-get install default-jre-headless"
say "  Fedora:          sudo dnf install java-21-openjdk-headless"
say "  macOS:           brew install openjdk@21"
say "or set JAVA_HOME to one that is already there."
exit 1
