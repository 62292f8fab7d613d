#!/usr/bin/env python3
"""What `memshim check` writes as SARIF and JUnit is sound and says what --json does: by a schema of the keys that are used (sarif.schema.json) and an XML parser, of a
report made by hand and of one whose every name was made to do harm. The tools' own readers: scripts/test-exports."""
import json
import os
import subprocess
import sys
import xml.etree.ElementTree

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import MEMSHIM, TMP, fact, plan  # noqa: E402

HERE = os.path.join(os.environ["top_srcdir"], "tests", "check")
HARM = "\u009b31m\x1b]0;x\x07\x7f\u0085\r\n;\"'\\,=<![CDATA[&amp;]]>%s\ufffe \u2028"
LIMITS = ["--max-peak", "1M", "--max-leak", "1M", "--max-leak", "1G", "--max-reserved", "0", "--max-growth", "device=1G", "--max-peak", "owner=2M"]


def strings(value, change):
    """The same with each name changed; what steers the reader is left alone."""
    kept = {"kind", "class", "api", "memory", "schema_version", "end_reason", "hash", "source", "state", "rel_pc", "build_id", "commit", "cause"}
    if isinstance(value, dict):
        return {key: item if key in kept else strings(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [strings(item, change) for item in value]
    return change(value) if isinstance(value, str) else value


def reports():
    """(name, path) of what is checked."""
    with open(os.path.join(os.environ["top_srcdir"], "tests", "cli", "data", "train.json"), encoding="utf-8") as file:
        plain = json.load(file)
    for name, report in (("plain", plain), ("hostile", strings(plain, lambda text: text + HARM))):
        path = os.path.join(TMP, name + ".json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(report, file)
        yield name, path


def check(path, *words):
    """(status, what --json says, the SARIF, the JUnit)."""
    sarif, junit = path + ".sarif", path + ".xml"
    done = subprocess.run([MEMSHIM, "check", "-f", "--json", "--sarif", sarif, "--junit", junit, *words, path], capture_output=True, timeout=60, check=False)
    with open(sarif, "rb") as file, open(junit, "rb") as other:
        return done.returncode, json.loads(done.stdout), json.loads(file.read()), other.read()


def validate(value):
    """The first thing that the schema does not allow, or None."""
    import jsonschema

    with open(os.path.join(HERE, "sarif.schema.json"), encoding="utf-8") as file:
        found = sorted(jsonschema.Draft202012Validator(json.load(file)).iter_errors(value), key=str)
    return found[0].message if found else None


def main():
    """A fact for each format of each report."""
    try:
        import jsonschema  # noqa: F401
    except ImportError:
        print("1..0 # SKIP python3-jsonschema is not installed")
        return
    for name, path in reports():
        status, said, sarif, junit = check(path, "--source-root", "/src" if os.path.isdir("/src") else "/", *LIMITS)
        failed = [row for row in said["checks"] if not row["held"]]
        fact(status == 1 and failed and len(failed) < len(said["checks"]), "%s: some fail and some hold" % name, [status, said])
        fact(validate(sarif) is None, "%s: SARIF has no key that it should not have" % name, [validate(sarif)])
        results = sarif["runs"][0]["results"]
        rules = sarif["runs"][0]["tool"]["driver"]["rules"]
        ruled = [result["ruleId"] for result in results] == ["memshim/" + row["figure"] for row in failed]
        fact(ruled and all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in results), "%s: SARIF has each failure, with its rule" % name, results)
        lines = [result["locations"][0]["physicalLocation"]["region"]["startLine"] for result in results]
        fact(lines == [row.get("own", {}).get("line", 1) for row in failed], "%s: and the line that holds most" % name, lines)
        fact(len({result["partialFingerprints"]["memshimCheck/v1"] for result in results}) == len(results), "%s: fingerprints differ" % name, results)
        suites = xml.etree.ElementTree.fromstring(junit)
        cases = suites.findall("./testsuite/testcase")
        fact([bool(case.findall("failure")) for case in cases] == [not row["held"] for row in said["checks"]], "%s: JUnit has a case for each check" % name, [junit[:400]])
        fact((int(suites.get("tests")), int(suites.get("failures"))) == (len(cases), len(failed)), "%s: and their numbers" % name, [junit[:400]])
        fact(not any(byte < 32 and byte != 10 for byte in junit), "%s: JUnit holds no control character" % name)
    status, said, sarif, junit = check(os.path.join(TMP, "plain.json"), "--max-peak", "1G")
    fact(status == 0 and sarif["runs"][0]["results"] == [] and validate(sarif) is None, "where all holds there is no result", [status, sarif])
    plan(17)


if __name__ == "__main__":
    if os.access(MEMSHIM, os.X_OK):
        main()
    else:
        print("1..0 # SKIP the memshim command is not built")
