"""own_frames.py - a program that knows its own stack, and compares it with what is read of its memory.

Run by an interpreter under test with probe.so preloaded: own_frames.py LIBRARY STACKS SEED. Calls nest at random
through everything by which Python calls Python; at the bottom the stack is taken, and function, file and line
of each frame are held against what sys._getframe says; and where the frames come between the native ones, against
which functions are called by C code. Prints what was compared, and the first differences.
Needs no module that is not in the standard library; for 3.9 and later.
"""
import contextlib
import ctypes
import functools
import random
import re
import sys
import threading

LIBRARY, STACKS, SEED = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
READ, NOT_BEGUN, DEPTH, NATIVE_DEPTH = 2, 0xFFFFFFFF, 512, 256
NATIVE, LIBC, FFI = 1, 2, 4


class Frame(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint32), ("offset", ctypes.c_uint32), ("entry", ctypes.c_uint64)]


class Code(ctypes.Structure):
    _fields_ = [
        ("file", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("lines", ctypes.c_void_p),
        ("lines_bytes", ctypes.c_uint32),
        ("first_line", ctypes.c_uint32),
    ]


class Merged(ctypes.Structure):
    _fields_ = [("pythons", ctypes.c_int32), ("natives", ctypes.c_int32), ("recorded", ctypes.c_int32),
                ("gaps", ctypes.c_uint8 * DEPTH)]


released = ctypes.CDLL(LIBRARY)
held = ctypes.PyDLL(LIBRARY)


@functools.lru_cache(None)
def utf8(text):
    """As the reader writes names: half surrogates cannot be told."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text).encode()


def line_table(code):
    return code.co_linetable if sys.version_info >= (3, 10) else code.co_lnotab


def lines_of(code):
    """(first offset, line) in order."""
    if sys.version_info >= (3, 10):
        return [(start, line) for start, end, line in code.co_lines() if end > start]
    table, offset, line = code.co_lnotab, 0, code.co_firstlineno
    known = [(0, line)]
    for i in range(0, len(table), 2):
        offset += table[i]
        line += table[i + 1] - (256 if table[i + 1] >= 128 else 0)
        known.append((offset, line))
    return known


def line_at(code, offset):
    if offset == NOT_BEGUN:
        return code.co_firstlineno
    line = None
    for start, here in lines_of(code):
        if start > offset:
            break
        line = here
    return line


class Tally(threading.local):
    def __init__(self):
        self.frames = (Frame * DEPTH)()
        self.merged = Merged()
        self.state, self.count = ctypes.c_int(), ctypes.c_uint()
        self.random = random.Random(SEED)
        self.lines = {}


tally = Tally()
lock = threading.Lock()
taken = equal = wrong = unread = apart = recorded = 0
deepest = 0
kinds = {}
differences = []
rows = {}


def same_row(row, code):
    """Whether the row says what the code object says. Keeps no code object alive: others are to take its place."""
    name = code.co_qualname if sys.version_info >= (3, 11) else code.co_name
    told = rows.get(row)
    if told is None:
        said = Code()
        if released.probe_code(row, ctypes.byref(said)) != 0:
            return False
        told = rows[row] = (said.file, said.name, said.first_line, ctypes.string_at(said.lines, said.lines_bytes))
    return told == (utf8(code.co_filename), utf8(name), code.co_firstlineno, line_table(code))


def same(read, frame):
    code = frame.f_code
    if not same_row(read.code, code):
        return False
    key = (read.code, read.offset)
    line = tally.lines.get(key, key)
    if line is key:
        line = tally.lines[key] = line_at(code, read.offset)
    return line == frame.f_lineno


def compare(frame):
    """Of `frame` outwards, with the frames that were read but the innermost."""
    read, count, i = tally.frames, tally.count.value, 1
    while frame is not None and i < count:
        if not same(read[i], frame):
            said = Code()
            released.probe_code(read[i].code, ctypes.byref(said))
            return "frame %d: %s:%d in %s, offset %d, was read for %s:%s in %s, state %d" % (
                i, said.file, said.first_line, said.name, read[i].offset,
                frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, tally.state.value)
        frame, i = frame.f_back, i + 1
    if i != count or (frame is not None and count != DEPTH):
        return "%d frames were read, %s" % (count, "more are there" if frame else "fewer are there")
    return None


# Who is called by whom through C code, and whether that is a function of the C library.
THROUGH = {("visit", "called_back"): NATIVE | LIBC | FFI, ("<lambda>", "key"): NATIVE, ("go", "mapped"): NATIVE,
           ("<lambda>", "reduced"): NATIVE}


def misplaced(frame):
    """Of the frames from `frame` outwards, which native ones are between them; None where all is well."""
    merged, i = tally.merged, 1
    if merged.recorded == 0:
        return "another stack was recorded than was merged"
    if merged.pythons == 0:
        return None
    if merged.pythons != tally.count.value:
        return "the merged stack has other Python frames"
    if merged.gaps[0] & (LIBC | FFI) != FFI:
        return "the call is not inside of all Python frames"
    inner = frame
    while inner is not None and inner.f_back is not None and i < merged.pythons - 1:
        outer, i = inner.f_back, i + 1
        want = THROUGH.get((inner.f_code.co_name, outer.f_code.co_name), 0)
        got = merged.gaps[i]
        is_odd = (got & want) != want or (got & LIBC and not want & LIBC)
        # The native frames end here, where no more were walked.
        is_cut = is_odd and merged.natives >= NATIVE_DEPTH and not any(merged.gaps[i + 1:merged.pythons])
        if is_odd and not (is_cut and not got & LIBC & ~want):
            return "between %s and %s are native frames %d of %d, not %d" % (
                inner.f_code.co_name, outer.f_code.co_name, got, merged.natives, want)
        inner = outer
    return None


def take(library=None):
    global taken, equal, wrong, unread, apart, recorded, deepest
    library = library or (released if tally.random.random() < 0.5 else held)
    library.probe_take(ctypes.byref(tally.state), tally.frames, DEPTH, ctypes.byref(tally.count), ctypes.byref(tally.merged))
    frame = sys._getframe(1)
    difference = None if tally.state.value != READ else compare(frame) or misplaced(frame)
    with lock:
        taken += 1
        deepest = max(deepest, tally.count.value)
        recorded += tally.merged.recorded == 1
        if tally.state.value != READ:
            unread += 1
            differences.append("state %d" % tally.state.value)
        elif difference:
            wrong += 1
            differences.append(difference)
        else:
            equal += 1
            apart += tally.merged.pythons == 0
        del differences[8:]


def plain(depth):
    go(depth)


def lines(depth):
    if depth % 2:
        go(
            depth
        )
    else:
        (
            go
        )(
            depth
        )


def twice(depth):
    take(); take(released)
    for library in (released, held): take(library)
    go(depth)


def generator(depth):
    def inner():
        yield 1
        go(depth)
        yield 2
    return sum(inner())


def delegating(depth):
    def inner():
        go(depth)
        yield 1

    def outer():
        yield from inner()
    return list(outer())


def generator_expression(depth):
    return [None for _ in (go(depth) for _ in range(1))]


def comprehension(depth):
    return [go(depth) for _ in range(1)], {1: x for x in [0]}


def nested_comprehension(depth):
    return {a: [go(depth) if b else None for b in (0, 1)] for a in range(1)}


def closure(depth):
    x = depth

    def inner():
        nonlocal x
        go(x)
    return [f() for f in (inner,)]


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper


@decorated
@decorated
def decorator(depth):
    return go(depth)


def key(depth):
    sorted([1, 2], key=lambda x: go(depth) or x)


def mapped(depth):
    list(map(go, [depth]))


def reduced(depth):
    functools.reduce(lambda a, b: go(depth) or a, [1, 2])


def substituted(depth):
    re.sub("x", lambda match: go(depth) or "", "x")


CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
libc = ctypes.CDLL(None)


def called_back(depth):
    def visit(a, b):
        if not done:
            done.append(1)
            go(depth)
        return 0
    done = []
    libc.qsort((ctypes.c_int * 2)(2, 1), ctypes.c_size_t(2), ctypes.c_size_t(4), CALLBACK(visit))


class Made:
    def __init__(self, depth):
        self.depth = depth
        go(depth)

    def __getattr__(self, name):
        return go(self.__dict__["depth"]) or 1

    @property
    def read(self):
        return go(self.depth)

    def __call__(self, depth):
        go(depth)

    def __add__(self, other):
        go(other)
        return 1

    def __lt__(self, other):
        go(self.depth)
        return True

    @classmethod
    def make(cls, depth):
        return cls(depth)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        go(self.depth)


class Derived(Made):
    def __init__(self, depth):
        super().__init__(depth)


def bare(depth):
    made = Made.__new__(Made)
    made.depth = depth
    return made


def made(depth):
    Made(depth)
    Derived(depth // 2)


def attribute(depth):
    return bare(depth).nothing


def property_read(depth):
    return bare(depth).read


def instance(depth):
    bare(depth)(depth)


def added(depth):
    return bare(depth) + depth


def smaller(depth):
    return bare(depth) < 1


def class_body(depth):
    class Body:
        value = go(depth)
    return Body


def context(depth):
    with bare(depth):
        pass


@contextlib.contextmanager
def managed(depth):
    go(depth)
    yield


def managing(depth):
    with managed(depth):
        pass


def raising(depth):
    try:
        raise ValueError
    except ValueError:
        go(depth)
    finally:
        go(depth // 2)


def anonymous(depth):
    (lambda d: go(d))(depth)


def awaited(depth):
    async def inner():
        go(depth)
        return 1

    async def outer():
        return await inner()
    try:
        outer().send(None)
    except StopIteration:
        pass


SOURCE = """
def f%d(depth):
    %s
    go(depth)
f%d(depth)
"""


def executed(depth):
    number = tally.random.randrange(1000)
    name = tally.random.choice(["caf\xe9-%d.py", "\u6a21\u578b-%d.py", "\U0001f40d-%d.py", "gen-%d-model.py", "\udc80-%d"]) % number
    exec(compile(SOURCE % (number, "pass\n    " * (number % 5), number), name, "exec"), {"go": go, "depth": depth})


def naïve(depth):
    def 函数():
        go(depth)
    函数()


def recursing(depth):
    def down(left):
        if left:
            return down(left - 1)
        return go(depth)
    down(tally.random.randrange(20))


def traced(depth):
    def trace(frame, event, arg):
        return trace
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        go(depth)
    finally:
        sys.settrace(before)


def profiled(depth):
    sys.setprofile(lambda *_: None)
    try:
        go(depth)
    finally:
        sys.setprofile(None)


WAYS = [plain, lines, twice, generator, delegating, generator_expression, comprehension, nested_comprehension, closure,
        decorator, key, mapped, reduced, substituted, called_back, made, attribute, property_read, instance, added,
        smaller, class_body, context, managing, raising, anonymous, awaited, executed, naïve, recursing, traced,
        profiled]


def go(depth):
    if depth <= 0 or taken >= STACKS:
        take()
    else:
        tally.random.choice(WAYS)(depth - 1)


def deep(left):
    if left:
        return deep(left - 1)
    take(released)
    take(held)


def too_deep():
    """More frames than are told, in one run of the evaluation loop: both kinds are kept apart."""
    global apart, wrong
    before = apart
    deep(1500)
    if (apart > before) != (sys.version_info >= (3, 11)):
        wrong += 1
        differences.append("1500 frames in one run: %d stacks are kept apart" % (apart - before))
    apart = before


async def asynchronous(asyncio):
    async def leaf(depth):
        await asyncio.sleep(0)
        go(depth)
        await asyncio.sleep(0)
        take()

    async def agen():
        for i in range(2):
            await asyncio.sleep(0)
            take()
            yield i
    await asyncio.gather(*(leaf(d) for d in range(4)))
    return [take() async for _ in agen()]


def work():
    tally.random = random.Random(threading.get_ident() ^ SEED)
    while taken < STACKS:
        go(tally.random.randrange(12))


def main():
    released.probe_start(1)
    if "--threads-only" not in sys.argv:
        sys.setrecursionlimit(5000)
        for way in WAYS:
            way(2)
        deep(500 - 3)
        deep(300)
        too_deep()
        deep(20)
        import asyncio  # takes long where nothing is compiled yet
        asyncio.run(asynchronous(asyncio))
        while taken < STACKS * 3 // 4:
            go(tally.random.randrange(24))
            if taken % 64 == 0:
                asyncio.run(asynchronous(asyncio))
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("version %#x, %d stacks: %d equal, %d wrong, %d not read, %d kept apart, %d recorded, deepest %d, %d code objects"
          % (released.probe_version(), taken, equal, wrong, unread, apart, recorded, deepest, released.probe_codes()))
    for difference in differences:
        print("  " + difference)
    sys.exit(1 if wrong or not equal or not recorded or (unread + apart) * 1000 > taken else 0)


if __name__ == "__main__":
    main()
