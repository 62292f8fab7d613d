"""The pool's tuned numbers (src/pool/policy/params.def): each can be read by scripts/bench tune, has a reason, and is used. Prints TAP."""

import glob
import os
import re
import sys

TOP = os.environ["top_srcdir"]
sys.path.insert(0, os.path.join(TOP, "tests/bench"))
import tune  # noqa: E402  pylint: disable=wrong-import-position


def main():
    """Holds the rows against the sources."""
    with open(os.path.join(TOP, "src/pool/policy/params.def"), encoding="ascii") as rows:
        text = rows.read()
    names = re.findall(r"^MS_(?:BYTES|TIME|RATIO)\((\w+)", text, re.M)
    sources = ""
    for path in glob.glob(os.path.join(TOP, "src/pool/**/*.[ch]"), recursive=True):
        with open(path, encoding="ascii") as source:
            sources += source.read()
    used = set(re.findall(r"\bMS_\w+", sources))
    read = tune.numbers(TOP)
    reasons = tune.ROW.findall(text)
    facts = [(len(names) > 40 and sorted(set(names)) == sorted(names), f"{len(names)} numbers, each once"),
             (sorted(read) == sorted(names), "all can be read by scripts/bench tune: " + " ".join(set(names) - set(read))),
             (all(value > 0 for _, value in read.values()), "none is nothing"),
             (all(len(reason) > 10 for _, _, _, reason in reasons), "each says what it means"),
             (set(names) <= used, "each is used: " + " ".join(set(names) - used)),
             (all(other not in (0, value) for kind, value in read.values() for other in tune.others(kind, value)),
              "what is tried in its place is something else")]
    print(f"1..{len(facts)}")
    for number, (holds, name) in enumerate(facts, 1):
        print(f"{'ok' if holds else 'not ok'} {number} - {name}")
    sys.exit(not all(holds for holds, _ in facts))


main()
