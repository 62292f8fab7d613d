/* kernels.h: the text of the kernels that tests/gpu launches, in a form that every driver compiles. */
#ifndef MS_TESTS_GPU_KERNELS_H
#define MS_TESTS_GPU_KERNELS_H

extern const char kit_ptx[];

#endif
