"""memshim merge of files in any grouping."""
import subprocess

from hooklib import MEMSHIM


def memshim(*words):
    """(status, standard output, standard error)."""
    done = subprocess.run([MEMSHIM, *words], capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def merged(paths, to):
    """The bytes of a job report of these files."""
    status, _, said = memshim("merge", "-f", "-o", to, *paths)
    if status:
        raise RuntimeError(said)
    with open(to, "rb") as file:
        return file.read()


def grouped(paths, dice, name):
    """The same by a tree of random groups, in random order."""
    level, files = 0, dice.sample(paths, len(paths))
    while len(files) > 1:
        parts, level, left = [], level + 1, files
        while left:
            many = dice.randint(1, max(2, len(files) // 2))
            to = "%s.%d.%d" % (name, level, len(parts))
            merged(left[:many], to)
            parts.append(to)
            left = left[many:]
        files = dice.sample(parts, len(parts))
    with open(files[0], "rb") as file:
        return file.read()
