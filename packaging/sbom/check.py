#!/usr/bin/env python3
"""Writes the SPDX 2.3 document of a tarball: every file with its sums, what is inside others' and under which licence, what is linked. The
same tarball gives the same bytes. Then spdx-tools reads and validates it.

Usage: check.py TARBALL DIRECTORY"""
import datetime
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile

MIT = "MIT"
OWN = "Apache-2.0"
UPLOT = "src/html/uplot/"


def files_of(tarball):
    """Name without the first folder, and contents."""
    with tarfile.open(tarball) as archive:
        for member in archive:
            if member.isfile():
                yield member.name.split("/", 1)[1], archive.extractfile(member).read()


def file_row(name, data):
    """One file; what is another project's says whose."""
    foreign = name.startswith(UPLOT)
    return {"SPDXID": "SPDXRef-File-" + hashlib.sha256(name.encode()).hexdigest()[:24], "fileName": "./" + name,
            "checksums": [{"algorithm": "SHA1", "checksumValue": hashlib.sha1(data).hexdigest()},
                          {"algorithm": "SHA256", "checksumValue": hashlib.sha256(data).hexdigest()}],
            "licenseConcluded": MIT if foreign else OWN, "licenseInfoInFiles": ["NOASSERTION"],
            "copyrightText": "Copyright (c) 2021 Leon Sorokin" if foreign else "NOASSERTION"}


def package(name, version, licence, text, where="NOASSERTION", sum256=None):
    """A package whose files are not listed."""
    row = {"SPDXID": "SPDXRef-Package-" + name, "name": name, "versionInfo": version, "downloadLocation": where, "filesAnalyzed": False,
           "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": text}
    if sum256:
        row["checksums"] = [{"algorithm": "SHA256", "checksumValue": sum256}]
    return row


def parts(contents):
    """What is inside the library and the command, or is linked by them: the package, and how it is related to memshim."""
    script = contents["scripts/build-libunwind"].decode()
    version = re.search(r"^version=(\S+)$", script, re.M)[1]
    sum256 = re.search(r"([0-9a-f]{64})  libunwind_\S+\.orig\.tar\.gz", script)[1]
    uplot = re.search(r"^uPlot (\S+)", contents["NOTICE"].decode(), re.M)[1]
    unwind = package("libunwind", version, MIT, "Copyright (c) 2002 Hewlett-Packard Co.", "https://deb.debian.org/debian/pool/main/libu/libunwind/", sum256)
    rows = [(unwind, "STATIC_LINK"),
            (package("jansson", "NOASSERTION", MIT, "Copyright (c) 2009-2014 Petri Lehtinen"), "STATIC_LINK"),
            (package("uPlot", uplot, MIT, "Copyright (c) 2021 Leon Sorokin"), "CONTAINS")]
    for name, licence in (("elfutils", "LGPL-3.0-or-later OR GPL-2.0-or-later"), ("yajl", "ISC"), ("ncurses", "X11-distribute-modifications-variant"), ("zlib", "Zlib")):
        rows.append((package(name, "NOASSERTION", licence, "NOASSERTION"), "DYNAMIC_LINK"))
    return rows


def document(tarball):
    """The document of a tarball."""
    contents = dict(files_of(tarball))
    name = os.path.basename(tarball)[: -len(".tar.xz")]
    with open(tarball, "rb") as file:
        whole = hashlib.sha256(file.read()).hexdigest()
    rows = [file_row(*pair) for pair in sorted(contents.items())]
    code = hashlib.sha1("".join(sorted(row["checksums"][0]["checksumValue"] for row in rows)).encode()).hexdigest()
    own = package("memshim", name.split("-", 1)[1], OWN + " AND " + MIT, "NOASSERTION", sum256=whole)
    own.update(filesAnalyzed=True, packageVerificationCode={"packageVerificationCodeValue": code}, licenseInfoFromFiles=["NOASSERTION"], licenseDeclared=OWN)
    own["packageFileName"] = os.path.basename(tarball)
    related = parts(contents)
    links = [("SPDXRef-DOCUMENT", "DESCRIBES", own["SPDXID"])] + [(own["SPDXID"], how, row["SPDXID"]) for row, how in related]
    links += [(own["SPDXID"], "CONTAINS", row["SPDXID"]) for row in rows]
    day = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
            "documentNamespace": "urn:memshim:spdx:%s:%s" % (name, whole),
            "creationInfo": {"created": day.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: memshim-packaging-sbom"]},
            "packages": [own] + [row for row, _ in related], "files": rows,
            "relationships": [{"spdxElementId": a, "relationshipType": how, "relatedSpdxElement": b} for a, how, b in links]}


def main():
    tarball, place = sys.argv[1:]
    path = os.path.join(place, os.path.basename(tarball)[: -len(".tar.xz")] + ".spdx.json")
    made = document(tarball)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(made, file, indent=1, sort_keys=True)
        file.write("\n")
    tool = os.path.join(os.path.dirname(sys.executable), "pyspdxtools")
    done = subprocess.run([tool, "-i", path], capture_output=True, text=True, check=False)
    print("%s: %d files, %d packages" % (path, len(made["files"]), len(made["packages"])))
    print(done.stdout + done.stderr)
    return done.returncode


sys.exit(main())
