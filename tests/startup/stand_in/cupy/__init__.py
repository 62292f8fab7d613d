"""A stand-in of CuPy: its pool calls the hooks of the thread, as cupy/cuda/memory.pyx does (CuPy 9 to 14)."""
import os

import vendor
from cupy import cuda

if os.environ.get("STAND_IN_FAILS"):
    raise ImportError("cupy: no device")
pool = cuda.MemoryPool(vendor.Segment())
