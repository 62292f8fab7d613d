"""A stand-in of RMM: resources, the current one, and a buffer that asks it (rmm 22 to 26)."""
from rmm import mr


class DeviceBuffer:
    def __init__(self, size):
        self.mr, self.size = mr.current[0], size
        self.ptr = self.mr.allocate(size)

    def free(self):
        self.mr.deallocate(self.ptr, self.size)


def reinitialize(pool_allocator=False, managed_memory=False, initial_pool_size=None, maximum_pool_size=None, devices=0):
    mr.current[0] = mr.PoolMemoryResource(mr.CudaMemoryResource(), initial_pool_size or 8 << 20) if pool_allocator else mr.CudaMemoryResource()
