"""Puts everything that scripts/hardware needs into one folder, so that it runs where nothing can be built or installed."""

import datetime
import json
import os
import shutil
import subprocess
import sys
import tarfile

MOST_BYTES = 64 << 20
PROGRAMS = ("tests/gpu/facts", "tests/gpu/conformance", "tests/gpu/costs", "tests/gpu/routes",
            "tests/hazards/hazards", "tests/traps/traps", "tests/nohang/nohang", "tests/bench/together", "tests/cases/kept")
VENDOR = ("tests/gpu/facts_static", "tests/gpu/routes_static", "tests/gpu/launch")
PROXY = "tests/gpu/proxy/libcuda.so.1"
SIMULATED = ("libcuda.so.1", "libcudart.so.12", "libcudart.so.13", "libnccl.so.2")
PAGES = ("docs/user/hardware.md", "docs/user/differences.md", "tests/gpu/conformance.golden")
# What every machine has, and in its own version.
OWN = ("linux-vdso", "ld-linux", "libc.so", "libm.so", "libpthread.so", "libdl.so", "librt.so", "libcuda.so", "libcudart.so")


def build(top, build_dir):
    """Brings the programs up to date."""
    if not os.path.exists(os.path.join(build_dir, "Makefile")):
        prepare = 'top=$1; "$top/scripts/install-deps" && . "$top/scripts/lib.sh" && ensure_configured'
        if subprocess.run(["sh", "-c", prepare, "sh", top], env={**os.environ, "BUILD_DIR": build_dir}, check=False).returncode:
            sys.exit("hardware: it could not be configured")
    vendor = subprocess.run(["make", "-s", "-C", build_dir, "print-gpu-vendor"], stdout=subprocess.PIPE, text=True, check=False)
    targets = ["all", *PROGRAMS, PROXY, *vendor.stdout.split()]
    done = subprocess.run(["make", "-s", "-C", build_dir, f"-j{os.cpu_count()}", *targets], stdout=subprocess.DEVNULL, check=False)
    if done.returncode:
        sys.exit("hardware: the programs could not be built")


def needed(path):
    """The shared libraries that an object needs and that machines do not all have."""
    text = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
    for line in text.splitlines():
        name, _, rest = line.strip().partition(" => ")
        place = rest.split(" (")[0]
        if place.startswith("/") and not name.startswith(OWN):
            yield name, place


def commit_of(top):
    """The commit, with a mark if the tree differs from it; what the tarball says where there is no repository."""
    def git(*words):
        return subprocess.run(["git", "-C", top, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    head = git("rev-parse", "HEAD").stdout.strip()
    if not head:
        return "unknown"
    return head + ("-changed" if git("status", "--porcelain", "--untracked-files=no").stdout.strip() else "")


def into(folder, top, build_dir):
    """Makes the folder anew."""
    shutil.rmtree(folder, ignore_errors=True)
    for sub in ("bin/proxy", "lib", "deps", "sim", "hw"):
        os.makedirs(os.path.join(folder, sub))

    def put(source, *target):
        if os.path.exists(source):
            shutil.copy2(source, os.path.join(folder, *target))

    for program in (*PROGRAMS, *VENDOR, "memshim"):
        put(os.path.join(build_dir, program), "bin")
    put(os.path.join(build_dir, PROXY), "bin", "proxy")
    put(os.path.join(build_dir, "libmemshim.so"), "lib")
    for library in SIMULATED:
        put(os.path.join(build_dir, library), "sim")
    for page in PAGES:
        put(os.path.join(top, page), os.path.basename(page))
    here = os.path.join(top, "tests", "gpu", "hw")
    for name in sorted(os.listdir(here)):
        if name.endswith(".py"):
            put(os.path.join(here, name), "hw")
    put(os.path.join(top, "tests", "gpu", "compare.py"), "hw")
    put(os.path.join(top, "scripts", "hardware"), "hardware")
    for program in (os.path.join(build_dir, "memshim"), os.path.join(build_dir, "libmemshim.so")):
        if os.path.exists(program):
            for name, place in needed(program):
                put(place, "deps", name)
    with open(os.path.join(folder, "pack.json"), "w", encoding="utf-8") as file:
        json.dump({"commit": commit_of(top), "packed": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")}, file)
    bytes_in = sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names)
    if bytes_in > MOST_BYTES:
        sys.exit(f"hardware: the pack has {bytes_in >> 20} MiB, more than the {MOST_BYTES >> 20} that may be carried")
    return bytes_in


def to_file(path, folder):
    """The folder as a compressed tarball."""
    with tarfile.open(path, "w:gz") as tar:
        tar.add(folder, arcname="memshim-hardware")
