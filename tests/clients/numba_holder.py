"""numba-cuda: a function that forgets arrays, and one that gives them back; NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT=0 has numba free what it would free later."""
import numpy as np
import planted
from numba import cuda


def holds():
    """Keeps it, by mistake: by a reference more in numba's own count as well, so that it is not freed as the program ends."""
    array = cuda.device_array(planted.KEPT_BYTES, dtype=np.uint8)  # line: holds
    array.gpu_data._mem.refct += 1
    array.gpu_data._finalizer.atexit = False
    planted.forget(array)


def gives_back():
    """Does not."""
    cuda.to_device(np.zeros(planted.PASSING_BYTES, dtype=np.uint8)).copy_to_host()


def take(size):
    """Asks for that many bytes."""
    cuda.device_array(size, dtype=np.uint8)


planted.come_to_an_end(holds, gives_back, take)
