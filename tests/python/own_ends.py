"""own_ends.py - stacks are taken while an interpreter ends, forks, and is interrupted: own_ends.py LIBRARY WAY.

Run with probe.so preloaded. That it ends as it says is the test; a crash is a signal in its exit status.
"""
import atexit
import ctypes
import os
import signal
import sys
import threading
import time

LIBRARY, WAY = sys.argv[1:3]
ABSENT, READ = 0, 2
WHOLE = 0  # probe_time()
probe = ctypes.CDLL(LIBRARY)


def take():
    state, count, frames = ctypes.c_int(), ctypes.c_uint(), ctypes.create_string_buffer(16 * 512)
    probe.probe_take(ctypes.byref(state), frames, 512, ctypes.byref(count), None)
    return state.value, count.value


def deep(left):
    return deep(left - 1) if left else take()


def forever():
    while True:
        deep(20)


def daemons():
    """Threads that go on while the interpreter is taken down around them."""
    for _ in range(4):
        threading.Thread(target=forever, daemon=True).start()
    time.sleep(0.02)


def at_exit():
    """What still runs Python at the end: handlers, and objects that are let go of last."""
    class Late:
        def __del__(self):
            self.take(20)
    late = Late()
    late.take = deep
    sys.modules["late"] = late
    atexit.register(deep, 20)
    atexit.register(daemons)


def dying():
    """Threads come and go, and their memory goes to the next."""
    for _ in range(40):
        threads = [threading.Thread(target=deep, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def forks():
    """A child has its own stack, read anew."""
    threading.Thread(target=forever, daemon=True).start()
    for i in range(8):
        deep(i)
        child = os.fork()
        if child == 0:
            state, count = deep(i)
            os._exit(0 if state == READ and count >= i + 2 else 1)
        if os.waitpid(child, 0)[1] != 0:
            sys.exit("a child did not read its stack")


def signals():
    """Handlers that take stacks themselves, while stacks are taken."""
    signal.signal(signal.SIGALRM, lambda *_: deep(5))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        if deep(30)[0] != READ:
            sys.exit("a stack was not read")
    signal.setitimer(signal.ITIMER_REAL, 0)


def interrupts():
    """A timer whose handler takes stacks wherever the program is: in the interpreter, in C code, in other threads."""
    deep(1) # the interpreter is found, which one thread does while others read nothing
    for _ in range(2):
        threading.Thread(target=forever, daemon=True).start()
    probe.probe_interrupt(100)
    while probe.probe_interrupts() < int(os.environ.get("TEST_PYTHON_SIGNALS", "2000")):
        for depth in (1, 30, 31, 200):
            state, count = deep(depth)
            if state != READ or count < depth + 2:
                sys.exit("read %d frames of %d, state %d" % (count, depth, state))
    probe.probe_interrupt(0)


# Of another interpreter: its frames by their names, each time others, of objects that may lie where others were.
INSIDE = """
import ctypes, os
probe = ctypes.PyDLL(%r)
class Code(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("name", ctypes.c_char_p), ("lines", ctypes.c_void_p), ("numbers", ctypes.c_uint * 2)]
def name(row):
    code = Code()
    probe.probe_code(row, ctypes.byref(code))
    return code.name.decode()
def take():
    state, count, frames = ctypes.c_int(), ctypes.c_uint(), (ctypes.c_uint * 2048)()
    probe.probe_take(ctypes.byref(state), frames, 512, ctypes.byref(count), None)
    return [name(frames[4 * i]) for i in range(count.value)]
def inside_%d():
    return take()
for _ in range(3):
    told = inside_%d()
    if told != ["take", "inside_%d", "<module>"]:
        print(told, flush=True)
        os._exit(1)
"""


def create(several):
    """One that may load extension modules as this one may, where there are others."""
    for way in (lambda: several.create("legacy"), lambda: several.create(isolated=False)):
        try:
            return way()
        except (TypeError, ValueError):
            continue
    return several.create()


def interpreters():
    """Other interpreters within the process: each has states of its own for this thread."""
    try:
        import _interpreters as several
    except ImportError:
        try:
            import _xxsubinterpreters as several
        except ImportError:
            return
    for number in range(4):
        try:
            other = create(several)
            several.run_string(other, INSIDE % ((LIBRARY,) + (number,) * 3))
            several.destroy(other)
        except (RuntimeError, AttributeError, ImportError):
            return
        deep(10)


class Code(ctypes.Structure):
    """As the probe tells of a code object."""
    _fields_ = [("file", ctypes.c_char_p), ("name", ctypes.c_char_p), ("lines", ctypes.c_void_p), ("bytes", ctypes.c_uint), ("first", ctypes.c_uint)]


def lines_of_caller():
    """First line and line table that are read for who called; while the interpreter's lock is held, and then not."""
    state, count, frames, code = ctypes.c_int(), ctypes.c_uint(), (ctypes.c_uint * 2048)(), Code()
    for library in (ctypes.PyDLL(LIBRARY), probe):
        library.probe_take(ctypes.byref(state), frames, 512, ctypes.byref(count), None)
        if state.value != READ or library.probe_code(frames[4], ctypes.byref(code)) != 0:
            sys.exit("a stack was not read")
    return code.first, ctypes.string_at(code.lines, code.bytes)


def hold_against(function, number):
    """What is read of a function that returns lines_of_caller(), against what it says itself."""
    code = function.__code__
    if function() != (code.co_firstlineno, code.co_linetable if hasattr(code, "co_linetable") else code.co_lnotab):
        sys.exit("the lines of another function, the %dth" % number)


def remade():
    """Functions of one name that come to lie where the one before lay, and differ in the middle of their line tables alone."""
    slot = ctypes.c_void_p.from_address(id(type(remade.__code__)) + 48)  # PyCode_Type.tp_dealloc
    own, names, places = slot.value, {"take": lines_of_caller}, set()
    for number in range(200):
        middle = ["", "    told = take()"] if number % 2 else ["    told = take()", ""]
        lines = ["def function():"] + ["    told = 0"] * 20 + middle + ["    other = 0"] * 20 + ["    return told"]
        exec(compile("\n".join(lines), "remade.py", "exec"), names)
        code = names["function"].__code__
        places.add(id(code))
        hold_against(names["function"], number)
        del code, names["function"]
    if len(places) == 200:
        sys.exit("each function lay in another place")
    counted, slot.value = slot.value, own  # as a program may: then words alone tell
    if (counted != own) != (sys.version_info < (3, 12)):
        sys.exit("who lets go of code objects: %x, before %x" % (counted, own))
    for number in range(100):
        exec(compile("\n" * number + "def function():\n    return take()", "remade.py", "exec"), names)
        hold_against(names["function"], number)
    slot.value = counted


def off():
    """MEMSHIM_PYTHON=off: also once stacks and objects are new, nothing is on the way but the look at one word that is always there."""
    for depth in range(20):
        if deep(depth) != (ABSENT, 0):
            sys.exit("a stack was read")
        probe.probe_time(WHOLE, 10)
        ctypes.CDLL("libm.so.6")
    if probe.probe_looks() or probe.probe_codes():
        sys.exit("an interpreter was looked for")
    sys.exit(0)


probe.probe_start(int(WAY != "off"))
{way.__name__: way for way in (daemons, at_exit, dying, forks, signals, interrupts, interpreters, remade, off)}[WAY]()
state, count = deep(20)
if state != READ or count < 22:
    sys.exit("read %d frames, state %d" % (count, state))
