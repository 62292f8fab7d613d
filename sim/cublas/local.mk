# sim/cublas: the simulated cuBLAS and cuBLASLt; one source tree, built once for each version
sim_PROGRAMS += libcublasLt.so.12 libcublas.so.12 libcublasLt.so.13 libcublas.so.13

sim_cublas_shared = src/vendor/abi/cuda_driver.h src/vendor/abi/cuda_driver_fn.h src/vendor/abi/cublas.h \
	sim/embedded/driver.h sim/embedded/embedded.def sim/embedded/driver.c sim/log.h sim/log.c \
	sim/embedded/entry.h sim/embedded/entry.c sim/cublas/cublas.h sim/cublas/rows.def sim/versions.h \
	sim/cublas/driver.def sim/cuda/code/multiply.h sim/cublas/compute.c sim/cublas/launch.c \
	sim/cublas/status.c sim/cublas/stubs.c
sim_cublas_sources = $(sim_cublas_shared) sim/cublas/exports.def \
	sim/cublas/copy.c sim/cublas/gemm.c sim/cublas/handle.c sim/cublas/product.c sim/cublas/result.c
sim_cublaslt_sources = $(sim_cublas_shared) sim/cublas/lt_exports.def \
	sim/cublas/lt.c sim/cublas/lt_object.c
sim_cublas_cppflags = $(AM_CPPFLAGS) -DSIM_DRIVER_DEF='"sim/cublas/driver.def"'
sim_cublas_cflags = $(AM_CFLAGS) $(MS_PIC_CFLAGS) -pthread
sim_cublas_ldflags = $(AM_LDFLAGS) -shared $(MS_NO_UNDEFINED) -Wl,-Bsymbolic

EXTRA_DIST += sim/cublas/cublas_12.map sim/cublas/cublas_13.map \
	sim/cublas/cublasLt_12.map sim/cublas/cublasLt_13.map

libcublasLt_so_12_SOURCES = $(sim_cublaslt_sources)
libcublasLt_so_12_CPPFLAGS = $(sim_cublas_cppflags) -DSIM_CUBLAS=12 -DSIM_LT
libcublasLt_so_12_CFLAGS = $(sim_cublas_cflags)
libcublasLt_so_12_LDFLAGS = $(sim_cublas_ldflags) -Wl,-soname,libcublasLt.so.12 \
	-Wl,--version-script=$(srcdir)/sim/cublas/cublasLt_12.map
libcublasLt_so_12_LDADD = -ldl
EXTRA_libcublasLt_so_12_DEPENDENCIES = sim/cublas/cublasLt_12.map

libcublas_so_12_SOURCES = $(sim_cublas_sources)
libcublas_so_12_CPPFLAGS = $(sim_cublas_cppflags) -DSIM_CUBLAS=12
libcublas_so_12_CFLAGS = $(sim_cublas_cflags)
libcublas_so_12_LDFLAGS = $(sim_cublas_ldflags) -Wl,-soname,libcublas.so.12 \
	-Wl,--version-script=$(srcdir)/sim/cublas/cublas_12.map
libcublas_so_12_LDADD = -ldl
EXTRA_libcublas_so_12_DEPENDENCIES = sim/cublas/cublas_12.map

libcublasLt_so_13_SOURCES = $(sim_cublaslt_sources)
libcublasLt_so_13_CPPFLAGS = $(sim_cublas_cppflags) -DSIM_CUBLAS=13 -DSIM_LT
libcublasLt_so_13_CFLAGS = $(sim_cublas_cflags)
libcublasLt_so_13_LDFLAGS = $(sim_cublas_ldflags) -Wl,-soname,libcublasLt.so.13 \
	-Wl,--version-script=$(srcdir)/sim/cublas/cublasLt_13.map
libcublasLt_so_13_LDADD = -ldl
EXTRA_libcublasLt_so_13_DEPENDENCIES = sim/cublas/cublasLt_13.map

libcublas_so_13_SOURCES = $(sim_cublas_sources)
libcublas_so_13_CPPFLAGS = $(sim_cublas_cppflags) -DSIM_CUBLAS=13
libcublas_so_13_CFLAGS = $(sim_cublas_cflags)
libcublas_so_13_LDFLAGS = $(sim_cublas_ldflags) -Wl,-soname,libcublas.so.13 \
	-Wl,--version-script=$(srcdir)/sim/cublas/cublas_13.map
libcublas_so_13_LDADD = -ldl
EXTRA_libcublas_so_13_DEPENDENCIES = sim/cublas/cublas_13.map
