"""Which frame of a stack is the program's own line: by the rows of fold.def, which are those of the memshim
command, and by where files lie (src/report/analyse/fold.c)."""

import ast
import re
from functools import lru_cache
from importlib import resources
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from memshim.rows import Frame, StackNode

_ROW = re.compile(r'^MS_FOLD\(("[^"]*"), (MODULE|PATH|PYTHON|NAME), ("[^"]*"), ("[^"]*")\)$', re.MULTILINE)
_STARTUP = {
    "_start",
    "__libc_start_main",
    "__libc_start_main_impl",
    "__libc_start_call_main",
    "start_thread",
    "clone",
    "__clone",
    "__clone3",
}
_LIBRARIES = ("/lib/", "/lib64/", "/usr/", "/opt/", "/nix/", "/gnu/")
_STANDARD_LIBRARY = re.compile("/lib/python[0-9]")
_SUFFIX = re.compile(r"( const| volatile| &&?| \[clone .*)$")


class _Rule(NamedTuple):
    by: str
    text: str
    function: str


def _rules() -> List[_Rule]:
    text = (resources.files("memshim") / "fold.def").read_text(encoding="utf-8")
    return [
        _Rule(by, ast.literal_eval(part), ast.literal_eval(function))
        for _, by, part, function in _ROW.findall(text)
    ]


_RULES = _rules()
_NAMES = [rule for rule in _RULES if rule.by == "NAME"]


def _without_arguments(name: str) -> str:
    """A name of C++ without its template arguments; as it is where its brackets do not match."""
    kept, depth, at = [], 0, 0
    while at < len(name):
        operator = (
            re.match(r"operator[<>=-]*", name[at : at + 12]) if name.startswith("operator", at) else None
        )
        if operator and (at == 0 or not (name[at - 1].isalnum() or name[at - 1] == "_")):
            kept.append(operator[0] if not depth else "")
            at += len(operator[0])
            continue
        depth += name[at] == "<"
        kept.append(name[at] if not depth else "")
        depth -= name[at] == ">" and not (at and name[at - 1] == "-")
        if depth < 0:
            return name
        at += 1
    return name if depth or name.startswith("<") else "".join(kept)


def cxx_function(name: str) -> str:
    """The function alone of a name as demanglers spell it, qualified by what it is in."""
    name = _without_arguments(name)
    while _SUFFIX.search(name) and _SUFFIX.sub("", name):
        name = _SUFFIX.sub("", name)
    depth = 0
    for at in range(len(name) - 1, 0, -1):
        depth += (name[at] == ")") - (name[at] == "(")
        if at == len(name) - 1 and depth != 1:
            break
        if depth == 0:
            name = name[:at]
            break
    begin, depth = 0, 0
    for at, letter in enumerate(name):
        if (
            depth == 0
            and name.startswith("operator", at)
            and (at == 0 or not (name[at - 1].isalnum() or name[at - 1] == "_"))
        ):
            break
        depth += (letter in "([{") - (letter in ")]}")
        if letter == " " and depth == 0 and at + 1 < len(name):
            begin = at + 1
    return name[begin:]


def _path(frame: Frame) -> str:
    return (frame.file if frame.kind == "python" else frame.module) or ""


@lru_cache(maxsize=16384)
def _folded_functions(is_python: bool, path: str) -> Tuple[str, ...]:
    """How functions end that are folded away by where they are; what is empty says all of them."""
    file = path.rsplit("/", 1)[-1]

    def fits(rule: _Rule) -> bool:
        if rule.by == "MODULE":
            return not is_python and file.startswith(rule.text)
        return rule.text in path and (rule.by == "PATH" or (rule.by == "PYTHON" and is_python))

    return tuple(rule.function for rule in _RULES if fits(rule))


@lru_cache(maxsize=16384)
def _is_own_place(is_python: bool, path: str) -> bool:
    if not path or "/site-packages/" in path or "/dist-packages/" in path:
        return False
    if is_python:
        return not path.startswith("<frozen ") and not _STANDARD_LIBRARY.search(path)
    return path.startswith("/") and not path.startswith(_LIBRARIES)


def is_folded(frame: Frame) -> bool:
    """Whether it is machinery, an interpreter's or a runtime's or a framework's, and no line to show."""
    function, is_python = frame.function or "", frame.kind == "python"
    if function.endswith(_folded_functions(is_python, _path(frame))):
        return True
    if is_python:
        return False
    return function in _STARTUP or any(
        rule.text in function and cxx_function(function).startswith(rule.text) for rule in _NAMES
    )


def is_own(frame: Frame) -> bool:
    """Whether it is the program's own: of Python neither in the standard library nor in an installed package,
    native in no library of the system or of a package."""
    return _is_own_place(frame.kind == "python", _path(frame))


class Lines:
    """The own line of each stack of a report, each node of the tree looked at once."""

    def __init__(self, nodes: Sequence[StackNode]) -> None:
        self._nodes = nodes
        # By stack: the innermost own frame, and the innermost that is not folded away.
        self._found: Dict[int, Tuple[Optional[Frame], Optional[Frame]]] = {0: (None, None)}
        self._judged: Dict[int, Tuple[bool, bool]] = {}

    def _judge(self, frame: Frame) -> Tuple[bool, bool]:
        judged = self._judged.get(id(frame))
        if judged is None:
            hidden = frame.kind == "mark" or is_folded(frame)
            judged = self._judged[id(frame)] = (hidden, not hidden and is_own(frame))
        return judged

    def of(self, stack: int) -> Optional[Frame]:
        """The innermost own frame of the stack; where there is none the innermost that is not folded away, or
        None."""
        way, at = [], stack
        while at not in self._found and 0 < at < len(self._nodes):
            way.append(at)
            self._found[at] = (None, None)  # a stack that is its own caller ends here
            at = self._nodes[at].parent
        found = self._found.get(at, (None, None))
        for at in reversed(way):
            frame = self._nodes[at].frame
            hidden, own = self._judge(frame)
            if own:
                found = (frame, frame)
            elif not hidden:
                found = (found[0], frame)
            self._found[at] = found
        found = self._found.get(stack, (None, None))
        return found[0] or found[1]
