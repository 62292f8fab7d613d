#!/usr/bin/python3
"""Write the C source of a driver that answers lookups and nothing else.

Takes the vendor's typedef header (which names every function's versions) and the list of exported names, so that it
carries exactly what the installed toolkit knows. Every lookup is logged with its answer and with the object that asked.
cuInit says "no device", so a runtime library makes all of its lookups and then stops.

usage: gen_stub.py cudaTypedefs.h EXPORTS > stub.c      EXPORTS: one name per line
"""
import collections
import re
import sys

SPECIAL = {"cuGetProcAddress", "cuGetProcAddress_v2", "cuInit", "cuDriverGetVersion", "cuGetExportTable"}
TEMPLATE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>

static void note(const char *format, const char *name, int version, unsigned long long flags, int status,
                 const char *answer, void *caller)
{
    const char *path = getenv("LOOKUP_LOG");
    char line[512];
    Dl_info info;
    const char *from = caller && dladdr(caller, &info) && info.dli_fname ? info.dli_fname : "?";
    const char *base = strrchr(from, '/');
    int length = snprintf(line, sizeof(line), format, name, version, flags, status, answer, base ? base + 1 : from);
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;

    if (fd >= 0) {
        if (write(fd, line, length) != length)
            abort();
        close(fd);
    }
}
"""
TAIL = r"""
static const struct row *find(const char *name, int version, unsigned long long flags)
{
    const struct row *best = NULL;

    for (unsigned pass = flags == 2 ? 1 : 0; ; pass--) {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
            if (rows[i].ptsz == pass && rows[i].version <= version && strcmp(rows[i].name, name) == 0 &&
                (!best || rows[i].version > best->version))
                best = &rows[i];
        if (best || pass == 0)
            return best;
    }
}

static int lookup(const char *name, void **out, int version, unsigned long long flags, void *caller)
{
    const struct row *row = find(name, version, flags);
    int status = row ? 0 : 500;

    if (out)
        *out = row ? row->function : NULL;
    note("%s %d %llu %d %s %s\n", name[0] ? name : "(empty)", version, flags, status, row ? row->export : "-", caller);
    return status;
}

int cuGetProcAddress(const char *name, void **out, int version, unsigned long long flags)
{
    return lookup(name, out, version, flags, __builtin_return_address(0));
}

int cuGetProcAddress_v2(const char *name, void **out, int version, unsigned long long flags, int *status)
{
    int result = lookup(name, out, version, flags, __builtin_return_address(0));

    if (status)
        *status = result ? 1 : 0;
    return result;
}

int cuInit(unsigned flags)
{
    (void)flags;
    return 100;
}

int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return 0;
}

int cuGetExportTable(const void **table, const void *id)
{
    (void)table, (void)id;
    return 500;
}
"""


def variants(exports, base, ptsz):
    """The exported names of one function in the order of their versions."""
    suffix = r"_pt[sd][sz]" if ptsz else ""
    pattern = re.compile(r"%s(?:_v(\d+))?%s$" % (re.escape(base), suffix))
    found = [(int(m.group(1) or 1), e) for e in exports for m in [pattern.match(e)] if m]
    return [e for _, e in sorted(found)]


def main():
    header = open(sys.argv[1], encoding="utf-8", errors="replace").read()
    exports = [line.strip() for line in open(sys.argv[2], encoding="utf-8") if line.startswith("cu")]
    versions = collections.defaultdict(set)
    for base, version, ptsz in re.findall(r"\bPFN_(cu\w+?)_v(\d+)(_pt[sd][sz])?\b", header):
        versions[base, bool(ptsz)].add(int(version))
    rows = []
    for (base, ptsz), known in sorted(versions.items()):
        names = variants(exports, base, ptsz)
        # More versions than names never happens; more names than versions leaves the oldest names out.
        for version, export in zip(sorted(known), names[-len(known):]):
            rows.append((base, version, ptsz, export))
    print(TEMPLATE)
    for name in exports:
        if name not in SPECIAL:
            print("int %s(void);\nint %s(void)\n{\n    return 3;\n}" % (name, name))
    print("int cuGetProcAddress(const char *, void **, int, unsigned long long);")
    print("int cuGetProcAddress_v2(const char *, void **, int, unsigned long long, int *);")
    print("int cuInit(unsigned);\nint cuDriverGetVersion(int *);\nint cuGetExportTable(const void **, const void *);")
    print("static const struct row {\n    const char *name;\n    int version;\n    unsigned ptsz;")
    print("    void *function;\n    const char *export;\n} rows[] = {")
    for base, version, ptsz, export in rows:
        print('    {"%s", %d, %d, (void *)%s, "%s"},' % (base, version, ptsz, export, export))
    print("};")
    print(TAIL)


main()
