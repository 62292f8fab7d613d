"""What this package raises; each message is one line that names what was given and what is allowed."""


class ReportError(ValueError):
    """A file that is no report of memshim's, or one that this package does not read."""


class MissingPackage(ImportError):
    """An optional package that is not installed; the message says what brings it."""


def missing(package: str, extra: str) -> MissingPackage:
    """The error for `package`, which `memshim[extra]` brings."""
    return MissingPackage("%s is not installed: pip install 'memshim[%s]'" % (package, extra), name=package)
