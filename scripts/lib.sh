# Shared by the set-up scripts: messages, and installing Debian packages where that is possible.

say() { printf 'headrace: %s\n' "$*" >&2; }

# As root, or by a sudo that asks no password. Fails if neither is possible.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        sudo -n env DEBIAN_FRONTEND="${DEBIAN_FRONTEND:-}" "$@"
    else
        return 1
    fi
}

# apt_install PACKAGE..: install the first of these that exists. Fails without a word where apt cannot be used.
apt_install() {
    command -v apt-get >/dev/null 2>&1 || return 1
    as_root true || return 1
    export DEBIAN_FRONTEND=noninteractive
    as_root apt-get update -qq >&2 || say "apt-get update failed; trying with the package lists that are there"
    local package
    for package in "$@"; do
        if apt-cache show "$package" >/dev/null 2>&1; then
            say "installing $package"
            as_root apt-get install -y -qq --no-install-recommends "$package" >&2 && return 0
        fi
    done
    return 1
}
