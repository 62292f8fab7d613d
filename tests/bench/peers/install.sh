#!/bin/sh
# Unpacks what is needed of the packages in requirements.txt into PLACE, once: install.sh PLACE. About 550 MB are fetched
# from PyPI and 35 MB stay. If that cannot be done here, says why on standard error and exits with 1.
set -u

here=$(cd "$(dirname "$0")" && pwd)
place=$1
said=$(mktemp)
trap 'rm -f "$said"; rm -rf "$place.new"' EXIT

cannot() {
    sed 's/^/# /' "$said" >&2
    echo "the peers cannot be installed: $1" >&2
    exit 1
}

cmp -s "$here/requirements.txt" "$place/installed" && exit 0
[ "$(uname -m)" = x86_64 ] || cannot "their packages are for x86-64"
command -v g++ >/dev/null 2>&1 || cannot "g++ is not installed"
rm -rf "$place.new"
mkdir -p "$place.new" || exit 1
echo "== fetching PyTorch's and RMM's allocators into $place" >&2
python3 -m venv "$place.new/venv" >"$said" 2>&1 || cannot "python3 cannot make a virtual environment"
"$place.new/venv/bin/python" -m pip download --quiet --disable-pip-version-check --no-input --no-deps --require-hashes \
    --only-binary :all: --python-version 3.11 --platform manylinux_2_28_x86_64 --platform manylinux_2_24_x86_64 \
    --platform manylinux_2_17_x86_64 --dest "$place.new/wheels" -r "$here/requirements.txt" >"$said" 2>&1 ||
    cannot "pip failed"
python3 - "$place.new" >"$said" 2>&1 <<'PYTHON' || cannot "a package has another form"
import glob
import sys
import zipfile

KEPT = ("torch/lib/libc10.so", "torch/lib/libc10_cuda.so", "torch/include/c10/", "torch/include/torch/headeronly/",
        "librmm/include/", "librmm/lib64/librmm.so", "rapids_logger/include/", "rapids_logger/lib64/", "nvidia/cu13/include/")
for wheel in glob.glob(sys.argv[1] + "/wheels/*.whl"):
    with zipfile.ZipFile(wheel) as package:
        package.extractall(sys.argv[1], [name for name in package.namelist() if name.startswith(KEPT) or "LICENSE" in name])
PYTHON
rm -rf "$place.new/wheels" "$place.new/venv" "$place"
cp "$here/requirements.txt" "$place.new/installed"
mv "$place.new" "$place"
