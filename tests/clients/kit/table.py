"""The table of clients: tests/clients/clients.conf, as Python values. Reads that file alone.

A section is a client. Its keys:

  kind          small: run by scripts/test and .ci/run too; large: by scripts/test-clients alone; told: not run, and `missing` says why
  requirements  the file requirements/NAME.txt that is installed; clients with the same one share a virtual environment
  package       whose version the page tells
  reaches       how it reaches the driver
  runs          a run a line: PROGRAM [VARIABLE=VALUE...] [ARGUMENT...] [view=VIEW]; VIEW is what run.view has to be
  holders       programs with a planted holder, a line each as in runs: played to three ends, and judged by what people are told (kit/holder.py)
  faults        programs with mistakes, a line each: PROGRAM [VARIABLE=VALUE...] NAME RULE; what is found of each and of its clean twin is judged (kit/faults.py)
  fits          programs with sizes, a line each: PROGRAM [VARIABLE=VALUE...] SIZE SIZE...; what `memshim fit` tells of them is tried (kit/fits.py)
  build         what the compiler is told beside a program in C or C++ ({site}: the site-packages, {build}: the simulator)
  suite         a suite of the vendor's, a line: modules with tests of the kind that `runner` says (unittest; pytest); `deselect`, a regular expression a line, leaves out tests whose name it matches
  checkout      FOLDER NAME: the suite is in this folder of a checkout that the user names (kit/checkout.py), and its conftest.py imports NAME; with runner = pytest
  diagnostics   an extended regular expression: lines of the report's diagnostics[] that are expected
  module        an extended regular expression: the report names a module of such a path as one that allocated
  processes     how many processes a run has that use the GPU (1)
  figures       whose figures agree with ours, in words
  missing       what is missing and why
"""
import configparser
import os
import shlex

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KINDS = ("small", "large", "told")
KEYS = ("kind", "requirements", "package", "reaches", "runs", "holders", "faults", "fits", "build", "suite", "runner", "deselect", "checkout", "diagnostics", "module", "processes", "figures", "missing")


class Client:
    """A section."""

    def __init__(self, name, values):
        unknown = [key for key in values if key not in KEYS]
        if unknown or values.get("kind") not in KINDS:
            raise SystemExit("clients.conf: [%s]: %s" % (name, "unknown key %s" % unknown[0] if unknown else "kind is none of %s" % ", ".join(KINDS)))
        self.name = name
        self.kind = values["kind"]
        self.requirements = values.get("requirements", name)
        self.package = values.get("package", name)
        self.reaches = values.get("reaches", "")
        self.figures = values.get("figures", "")
        self.missing = values.get("missing", "")
        self.runs = [Run(line) for line in lines(values.get("runs"))]
        self.holders = [Run(line) for line in lines(values.get("holders"))]
        self.faults = [Run(line) for line in lines(values.get("faults"))]
        self.fits = [Run(line) for line in lines(values.get("fits"))]
        self.build = shlex.split(values.get("build", ""))
        self.suite = lines(values.get("suite"))
        self.runner = values.get("runner", "unittest")
        self.deselect = lines(values.get("deselect"))
        self.checkout = values.get("checkout", "").split()
        self.module = values.get("module", "")
        self.diagnostics = values.get("diagnostics", "")
        self.processes = int(values.get("processes", "1"))


class Run:
    """A program with what it is given."""

    def __init__(self, line):
        words = [word for word in shlex.split(line) if not word.startswith("view=")]
        self.view = dict([word.split("=", 1) for word in shlex.split(line) if word.startswith("view=")]).get("view")
        self.name = " ".join(words)
        self.program = os.path.join(HERE, words[0])
        given = 1
        while given < len(words) and "=" in words[given] and words[given].split("=")[0].isupper():
            given += 1
        self.variables = dict(word.split("=", 1) for word in words[1:given])
        self.arguments = words[given:]


def lines(value):
    """What a value of several lines holds."""
    return [line.strip() for line in (value or "").splitlines() if line.strip()]


def read():
    """Every client, in the order of the file."""
    parser = configparser.ConfigParser(interpolation=None, comment_prefixes=("#",), delimiters=("=",))
    parser.optionxform = str
    with open(os.path.join(HERE, "clients.conf"), encoding="utf-8") as file:
        parser.read_file(file)
    return [Client(name, dict(parser[name])) for name in parser.sections()]


def choose(names=(), kinds=KINDS):
    """Those of these names (all, without any) and kinds."""
    clients = read()
    unknown = [name for name in names if name not in [client.name for client in clients]]
    if unknown:
        raise SystemExit("no client is called %s; there are %s" % (unknown[0], ", ".join(client.name for client in clients)))
    return [client for client in clients if (client.name in names if names else client.kind in kinds)]
