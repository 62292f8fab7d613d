#!/usr/bin/env python3
"""Reads every ELF file of a wheel: what each asks of the C library, from the tables of versions in the file itself, is no newer than glibc
2.28; what it needs is the C library's or lies beside it; nothing of what was linked in is exported; no folder of the machine that built it
is in it. Prints TAP. Without a wheel: the reader against files whose versions are known, and the wheels that scripts/wheel has made, if any.

Usage: tests/wheel/elves.py [WHEEL...]"""
import glob
import os
import re
import struct
import subprocess
import sys
import zipfile

NEWEST = (2, 28)
# What every glibc from 2.28 on has, under these names. The loader is named where its own variables are asked for.
SYSTEM = {"libc.so.6", "libpthread.so.0", "libdl.so.2", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
LINKED_IN = re.compile(r"^(json_|jsonp_|yajl_|unw_|_U(x86_64|aarch64|Lx86_64)|lzma_|deflate|inflate|_nc_|__cxa_|_ZSt)")
SHT_DYNSYM, SHT_DYNAMIC, SHT_VERNEED, DT_NEEDED, DT_RUNPATH, DT_RPATH = 11, 6, 0x6ffffffe, 1, 29, 15
done = failed = 0


def fact(good, name, said=()):
    """One line of TAP."""
    global done, failed
    done += 1
    failed += not good
    print("%s %d - %s" % ("ok" if good else "not ok", done, name))
    if not good:
        for line in said:
            print("# %s" % (line,))


class Elf:
    """What the dynamic sections of a 64-bit little-endian file say."""

    def __init__(self, data):
        self.data = data
        place, = struct.unpack_from("<Q", data, 40)
        size, count = struct.unpack_from("<HH", data, 58)
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", data, place + index * size) for index in range(count)]

    def of(self, kind):
        """(section, the section of its strings) of each of that type."""
        return [(section, self.sections[section[6]]) for section in self.sections if section[1] == kind]

    def text(self, strings, offset):
        """A string of that section's."""
        start = strings[4] + offset
        return self.data[start:self.data.index(b"\0", start)].decode()

    def dynamic(self, tag):
        """The strings that the dynamic section has under that tag."""
        return [self.text(strings, value) for section, strings in self.of(SHT_DYNAMIC)
                for key, value in struct.iter_unpack("<QQ", self.data[section[4]:section[4] + section[5]]) if key == tag]

    def versions(self):
        """(library, version) of each version that it asks for."""
        for section, strings in self.of(SHT_VERNEED):
            place = section[4]
            for _ in range(section[7]):
                _, count, library, first, following = struct.unpack_from("<HHIII", self.data, place)
                asked = place + first
                for _ in range(count):
                    _, _, _, name, after = struct.unpack_from("<IHHII", self.data, asked)
                    yield self.text(strings, library), self.text(strings, name)
                    asked += after
                place += following

    def exported(self):
        """The names that it defines for others."""
        for section, strings in self.of(SHT_DYNSYM):
            for offset in range(section[4], section[4] + section[5], 24):
                name, info, _, where = struct.unpack_from("<IBBH", self.data, offset)
                if where and info >> 4 in (1, 2):
                    yield self.text(strings, name)


def number(version):
    """(2, 28) of GLIBC_2.28; what is not of that form is newer than everything."""
    found = re.match(r"^GLIBC_(\d+)\.(\d+)(\.\d+)?$", version)
    return (int(found[1]), int(found[2])) if found else (99, 0)


def look_at(name, data, beside):
    """All facts of one file."""
    elf = Elf(data)
    asked = sorted(elf.versions())
    new = ["%s of %s" % (version, library) for library, version in asked if library in SYSTEM and number(version) > NEWEST]
    fact(not new, "%s asks for %s at most" % (name, max((v for _, v in asked if v.startswith("GLIBC_2")), key=number, default="nothing")), new)
    needed = elf.dynamic(DT_NEEDED)
    fact(set(needed) <= SYSTEM | beside, "%s needs what every system has, or the wheel" % name, needed)
    paths = elf.dynamic(DT_RUNPATH) + elf.dynamic(DT_RPATH)
    fact(all(part.startswith("$ORIGIN") for path in paths for part in path.split(":")), "%s is found by where it lies" % name, paths)
    shown = [] if name.endswith(("libdw.so.1", "libelf.so.1")) else [symbol for symbol in elf.exported() if LINKED_IN.match(symbol)]
    fact(not shown, "%s keeps what is linked in to itself" % name, shown[:10])


def look_into(wheel):
    """Every ELF file in it."""
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    elves = {name: data for name, data in files.items() if data[:4] == b"\x7fELF"}
    machine = {b"\x3e\x00": "x86_64", b"\xb7\x00": "aarch64"}
    fact(elves and all(wheel.endswith(machine[data[18:20]] + ".whl") for data in elves.values()), "%s: %d files of its machine" % (os.path.basename(wheel), len(elves)))
    beside = {os.path.basename(name) for name in elves}
    for name, data in sorted(elves.items()):
        look_at(name.split(".data/")[-1], data, beside)


def try_reader():
    """The reader sees what another one (readelf) sees, in a file of this machine that asks for newer versions than 2.28."""
    place = os.path.join(os.environ["top_builddir"], "libmemshim.so")
    said = subprocess.run(["readelf", "-VW", place], stdout=subprocess.PIPE, text=True, check=False, env=dict(os.environ, LC_ALL="C")).stdout
    theirs = set(re.findall(r"Name: (GLIBC_\S+)", said))
    with open(place, "rb") as file:
        elf = Elf(file.read())
    fact(theirs and theirs == {version for library, version in elf.versions() if version.startswith("GLIBC")}, "versions are read as readelf reads them", [theirs])
    fact("cudaMalloc" in set(elf.exported()) and "libc.so.6" in elf.dynamic(DT_NEEDED), "so are names and needs")
    fact(number("GLIBC_2.29") > NEWEST >= number("GLIBC_2.28") > number("GLIBC_2.2.5") and number("GLIBC_PRIVATE") > NEWEST, "versions are numbers, and the private one is newer than all")


wheels = sys.argv[1:]
if not wheels:
    try_reader()
    wheels = sorted(glob.glob(os.path.join(os.environ.get("WHEEL_DIR") or os.path.join(os.environ["top_srcdir"], "build-wheel"), "dist", "*.whl")))
    if not wheels:
        done += 1
        print("ok %d - the wheels # SKIP scripts/wheel has made none here" % done)
for each in wheels:
    look_into(each)
print("1..%d" % done)
sys.exit(failed > 0)
