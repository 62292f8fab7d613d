#!/usr/bin/env python3
"""Runs the recipe over a stub of Spack (stub/), and looks at what it said: the version is the tarball's, its configure knows each option,
with MPI and without, and what it depends on is what configure.ac asks for. That Spack itself takes it is not shown by this.

Usage: check.py TARBALL DIRECTORY"""
import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "stub"))
import spack.package  # noqa: E402

# What configure asks pkg-config for, and what Spack calls it.
ASKED = {"jansson": "jansson", "libdw": "elfutils", "zlib": "zlib-api", "yajl": "yajl", "ncursesw": "ncurses", "libzstd": "zstd"}


def recipe():
    """The class of the recipe."""
    found = importlib.util.spec_from_file_location("recipe", os.path.join(HERE, "package.py"))
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module.Memshim


def unpacked(tarball, place):
    """The folder of the tarball's sources."""
    with tarfile.open(tarball) as archive:
        archive.extractall(place, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(place)
    return os.path.join(place, os.path.basename(tarball)[: -len(".tar.xz")])


class Spec:
    """A concrete spec, with MPI or without."""

    def __init__(self, mpi):
        self.mpi = mpi

    def satisfies(self, text):
        return text == "+mpi" and self.mpi

    def __getitem__(self, name):
        return {"mpi": types.SimpleNamespace(mpicc="/opt/mpi/bin/mpicc")}[name]


def main():
    tarball = os.path.abspath(sys.argv[1])
    source = unpacked(tarball, os.path.join(sys.argv[2], "spack"))
    made = recipe()
    said = spack.package.SAID
    assert [words for name, words, _ in said if name == "version"] == [(os.path.basename(source).split("-", 1)[1],)], said
    depends = {re.split("[@ ~+]", words[0])[0] for name, words, _ in said if name == "depends_on"}
    with open(os.path.join(source, "configure.ac"), encoding="utf-8") as file:
        asked = re.findall(r"^PKG_CHECK_MODULES\(\[\w+\], \[(\w+)", file.read(), re.M)
    assert asked and {ASKED[name] for name in asked} <= depends, (asked, depends)
    told = subprocess.run(["./configure", "--help"], cwd=source, capture_output=True, text=True, check=True).stdout
    for mpi in (False, True):
        package = made(Spec(mpi), types.SimpleNamespace(bin="/opt/memshim/bin"), types.SimpleNamespace(path="/stage"))
        options = package.configure_args()
        print(options, package.url_for_version("0.9.0"))
        for option in options:
            assert re.sub("^--without", "--with", option).split("=")[0] in told, option
        assert any(option == "--with-mpi=" + ("/opt/mpi/bin/mpicc" if mpi else "no") for option in options), options
    run = []
    package.setup_run_environment(types.SimpleNamespace(prepend_path=lambda *words: run.append(words)))
    assert run == [("PATH", "/opt/memshim/bin")], run
    return 0


sys.exit(main())
