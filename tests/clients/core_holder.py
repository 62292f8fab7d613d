"""cuda-core: a function that forgets buffers of the device's pool, and one that closes them."""
import planted
from cuda.core import Device

DEVICE = Device(0)
DEVICE.set_current()
STREAM = DEVICE.create_stream()


def holds():
    """Keeps it, by mistake."""
    planted.forget(DEVICE.memory_resource.allocate(planted.KEPT_BYTES, stream=STREAM))  # line: holds


def gives_back():
    """Does not."""
    DEVICE.memory_resource.allocate(planted.PASSING_BYTES, stream=STREAM).close(STREAM)


def take(size):
    """Asks for that many bytes."""
    DEVICE.memory_resource.allocate(size, stream=STREAM)


planted.come_to_an_end(holds, gives_back, take)
