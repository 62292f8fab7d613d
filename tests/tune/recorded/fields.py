"""Fields of several sizes in numba, some of which outlive their step: fields.py STEPS."""

import sys

import numpy as np
from numba import cuda

for step in range(int(sys.argv[1])):
    points = 300000 + 170000 * ((step * 7) % 6)
    grid = cuda.device_array((points, 4), dtype=np.float32)
    fields = [cuda.device_array(points, dtype=np.float64) for _ in range(3)]
    mask = cuda.device_array(points // 8, dtype=np.uint8)
    if step % 3 == 0:
        kept = fields[step % 2]
    result = cuda.device_array((points, 2), dtype=np.complex64)
    del grid, mask
    scratch = cuda.device_array(2 * points, dtype=np.float32)
