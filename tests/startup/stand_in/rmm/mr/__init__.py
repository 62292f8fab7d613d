"""Resources."""
import vendor


class DeviceMemoryResource:
    pass


class CudaMemoryResource(DeviceMemoryResource):
    def allocate(self, nbytes, stream=None):
        return vendor.malloc(nbytes)

    def deallocate(self, ptr, nbytes, stream=None):
        vendor.runtime.cudaFree(ptr)


class UpstreamResourceAdaptor(DeviceMemoryResource):
    def __init__(self, upstream_mr):
        self.upstream_mr = upstream_mr


class PoolMemoryResource(UpstreamResourceAdaptor):
    def __init__(self, upstream_mr, initial_pool_size=8 << 20):
        super().__init__(upstream_mr)
        self.segment = vendor.Segment(initial_pool_size)

    def allocate(self, nbytes, stream=None):
        return self.segment.take(nbytes)[0]

    def deallocate(self, ptr, nbytes, stream=None):
        self.segment.give(ptr)


class StatisticsResourceAdaptor(UpstreamResourceAdaptor):
    current_bytes = peak_bytes = total_bytes = 0

    def allocate(self, nbytes, stream=None):
        address = self.upstream_mr.allocate(nbytes, stream)
        self.current_bytes += nbytes
        self.total_bytes += nbytes
        self.peak_bytes = max(self.peak_bytes, self.current_bytes)
        return address

    def deallocate(self, ptr, nbytes, stream=None):
        self.upstream_mr.deallocate(ptr, nbytes, stream)
        self.current_bytes -= nbytes


class LoggingResourceAdaptor(UpstreamResourceAdaptor):
    pass


class CallbackMemoryResource(DeviceMemoryResource):
    """What its function raises is told once more by the adaptor, as in C++."""

    def __init__(self, allocate_func, deallocate_func):
        self.allocate_func, self.deallocate_func = allocate_func, deallocate_func

    def allocate(self, nbytes, stream=None):
        try:
            return self.allocate_func(nbytes, stream)
        except MemoryError as error:
            raise MemoryError("std::bad_alloc: out_of_memory: " + str(error)) from None

    def deallocate(self, ptr, nbytes, stream=None):
        self.deallocate_func(ptr, nbytes, stream)


current = {0: CudaMemoryResource()}


def set_per_device_resource(device, mr):
    current[device] = mr


def get_per_device_resource(device):
    return current[device]


def set_current_device_resource(mr):
    current[0] = mr


def get_current_device_resource():
    return current[0]
