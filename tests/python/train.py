"""Allocates as a small training program does, on the simulated GPU."""
import ctypes
import time

runtime = ctypes.CDLL("libcudart.so.13")


def allocate(size):
    pointer = ctypes.c_void_p()
    status = runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size))
    return pointer if status == 0 else None


def load():
    return [allocate(1 << 20) for _ in range(8)]


def step(number):
    work = allocate((number + 1) << 20)
    time.sleep(0.01)
    runtime.cudaFree(work)


def phase(name):
    begin = getattr(ctypes.CDLL(None), "memshim_phase_push", None)
    if begin:
        begin(name)


def end():
    pop = getattr(ctypes.CDLL(None), "memshim_phase_pop", None)
    if pop:
        pop()


phase(b"load")
model = load()
end()
for number in range(4):
    phase(b"step")
    step(number)
    end()
for block in model[2:]:
    runtime.cudaFree(block)
too_much = allocate(1 << 45)
