#!/bin/sh
# Installs what requirements.txt lists into the virtual environment PLACE/venv, once: install.sh PLACE. If that cannot be
# done here, says why in one line on standard output (what pip said follows, each line behind a "#") and exits with 1.
# install.sh --ready PLACE only says, by its status, whether nothing is left to be fetched.
# Called by packages.sh and by scripts/quickstart.
set -u

here=$(cd "$(dirname "$0")" && pwd)
ready=
[ "$1" != --ready ] || { ready=yes && shift; }
venv=$1/venv
said=$(mktemp)
trap 'rm -f "$said"' EXIT

cannot() {
    echo "$1"
    sed 's/^/# /' "$said"
    rm -rf "$venv"
    exit 1
}

cmp -s "$here/requirements.txt" "$venv/installed" && exit 0
[ -z "$ready" ] || exit 1
command -v python3 >/dev/null 2>&1 || cannot "python3 is not installed"
[ "$(uname -m)" = x86_64 ] || cannot "the packages are for x86-64"
rm -rf "$venv"
mkdir -p "$1"
python3 -m venv "$venv" >"$said" 2>&1 || cannot "python3 cannot make a virtual environment"
timeout 240 "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --no-deps \
    --only-binary :all: --retries 1 --timeout 10 -r "$here/requirements.txt" >"$said" 2>&1 ||
    cannot "the packages cannot be installed from PyPI for $(python3 --version)"
cp "$here/requirements.txt" "$venv/installed"
