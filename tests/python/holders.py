"""Allocates in five functions, and gives back what a sixth took; sites.py knows the lines by their comments.

holders.py RUNTIME [kill|oom|thread LIBRARY]: then ends by SIGKILL, asks for more than there is, or has a thread that runs no
Python allocate."""

import ctypes
import os
import signal
import sys

cuda = ctypes.CDLL(sys.argv[1])


def device_malloc(size):
    """As a library would wrap it."""
    pointer = ctypes.c_void_p()
    status = cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size))  # line: malloc
    return pointer if status == 0 else None


def plain():
    return device_malloc(1000)  # line: plain


def decorated(function):
    def wrapper(*args):
        return function(*args)
    return wrapper


@decorated
def in_decorator():
    return device_malloc(2000)  # line: in_decorator


def generator():
    yield device_malloc(3000)  # line: generator


class Holder:
    def method(self):
        self.pointers = [device_malloc(size) for size in (4000, 4096)]  # line: method


def in_callback():
    return list(map(lambda size: device_malloc(size), [5000]))  # line: in_callback


def given_back():
    pointer = device_malloc(6000)
    cuda.cudaFree(pointer)


def main():
    kept = [plain(), in_decorator(), next(generator()), Holder().method(), in_callback()]
    given_back()
    if sys.argv[2:] == ["kill"]:
        os.kill(os.getpid(), signal.SIGKILL)
    if sys.argv[2:] == ["oom"]:
        kept.append(device_malloc(1 << 50))  # line: oom
    if sys.argv[2:3] == ["thread"]:
        ctypes.CDLL(sys.argv[3]).allocate_in_thread(ctypes.c_size_t(7000))


main()
