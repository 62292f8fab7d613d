#!/usr/bin/env python3
"""Has py-rattler-build render the recipe for both machines, and looks at what came of it: name, version, source, requirements, what is
tested; and that the options of its build are some that the tarball's configure knows.

Usage: check.py TARBALL DIRECTORY"""
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile

import rattler_build

HERE = os.path.dirname(os.path.abspath(__file__))


def options_of(tarball, place):
    """What configure --help lists."""
    with tarfile.open(tarball) as archive:
        archive.extractall(place, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(place)
    folder = os.path.join(place, os.path.basename(tarball)[: -len(".tar.xz")])
    told = subprocess.run(["./configure", "--help"], cwd=folder, capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"--(?:with|enable)-([a-z-]+)", told))


def rendered(machine):
    """The recipe for one machine, as plain data."""
    platform = rattler_build.PlatformConfig(target_platform=machine, build_platform=machine, host_platform=machine)
    variants = rattler_build.VariantConfig({"c_compiler": ["gcc"], "cxx_compiler": ["gxx"], "c_stdlib": ["sysroot"], "c_stdlib_version": ["2.28"]})
    found = rattler_build.Stage0Recipe.from_file(os.path.join(HERE, "recipe.yaml")).render(variants, rattler_build.RenderConfig(platform))
    assert len(found) == 1, found
    return found[0].recipe.to_dict()


def main():
    tarball = os.path.abspath(sys.argv[1])
    version = os.path.basename(tarball)[len("memshim-"): -len(".tar.xz")]
    with open(tarball, "rb") as file:
        whole = hashlib.sha256(file.read()).hexdigest()
    os.environ.update(MEMSHIM_VERSION=version, MEMSHIM_TARBALL="file://" + tarball, MEMSHIM_SHA256=whole)
    for machine in ("linux-64", "linux-aarch64"):
        recipe = rendered(machine)
        text = json.dumps(recipe)
        assert recipe["package"]["name"] == "memshim" and recipe["package"]["version"] == version, recipe["package"]
        assert whole in text and "file://" + tarball in text, "the tarball and its sum"
        missing = [word for word in ("gcc_" + machine, "gxx_" + machine, "sysroot_" + machine, "elfutils", "jansson", "yajl", "ncurses", "zlib") if word not in text]
        assert not missing and "${{" not in text, missing
        print(machine, json.dumps(recipe["requirements"]))
    known = options_of(tarball, os.path.join(sys.argv[2], "conda"))
    used = re.findall(r"--(?:with|enable|without|disable)-([a-z-]+)", text)
    assert used and set(used) <= known, (used, known)
    return 0


sys.exit(main())
