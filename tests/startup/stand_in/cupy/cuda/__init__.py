"""The pool, and what it hands out."""
import threading

from cupy.cuda import memory_hook
from cupy.cuda.memory_hook import MemoryHook

__all__ = ["MemoryHook", "MemoryPool", "memory_hook"]


class PooledMemory:
    def __init__(self, pool, size):
        self.pool = pool
        with pool.lock:
            self.address, self.size = pool.segment.take(size)
            pool.used += self.size
        for hook in memory_hook.get_memory_hooks().values():
            hook.malloc_postprocess(device_id=0, size=size, mem_size=self.size, mem_ptr=self.address, pmem_id=id(self))

    def free(self):
        for hook in memory_hook.get_memory_hooks().values():
            hook.free_preprocess(device_id=0, mem_size=self.size, mem_ptr=self.address, pmem_id=id(self))
        with self.pool.lock:
            self.pool.segment.give(self.address)
            self.pool.used -= self.size
        for hook in memory_hook.get_memory_hooks().values():
            hook.free_postprocess(device_id=0, mem_size=self.size, mem_ptr=self.address, pmem_id=id(self))


class MemoryPool:
    def __init__(self, segment):
        self.segment, self.used, self.lock = segment, 0, threading.Lock()

    def malloc(self, size):
        return PooledMemory(self, size)

    def used_bytes(self):
        return self.used
