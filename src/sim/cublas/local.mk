# src/sim/cublas: the simulated cuBLAS and cuBLASLt; one source tree, built once for each version
sim_PROGRAMS += libcublasLt.so.12 libcublas.so.12 libcublasLt.so.13 libcublas.so.13

sim_cublas_shared = \
	src/gpu/abi/cuda_driver.h src/gpu/abi/cuda_driver_fn.h src/gpu/abi/cublas.h \
	src/sim/embedded/driver.h src/sim/embedded/embedded.def src/sim/embedded/driver.c \
	src/sim/log.h src/sim/log.c src/sim/embedded/entry.h src/sim/embedded/entry.c \
	src/sim/cublas/cublas.h src/sim/cublas/rows.def src/sim/cublas/driver.def \
	src/sim/cuda/multiply.h src/sim/cublas/compute.c src/sim/cublas/launch.c src/sim/cublas/status.c src/sim/cublas/stubs.c
sim_cublas_sources = $(sim_cublas_shared) \
	src/sim/cublas/exports_12.def src/sim/cublas/exports_13.def \
	src/sim/cublas/copy.c src/sim/cublas/gemm.c src/sim/cublas/handle.c src/sim/cublas/product.c src/sim/cublas/result.c
sim_cublaslt_sources = $(sim_cublas_shared) \
	src/sim/cublas/lt_exports_12.def src/sim/cublas/lt_exports_13.def \
	src/sim/cublas/lt.c src/sim/cublas/lt_object.c
sim_cublas_cppflags = $(AM_CPPFLAGS) -DSIM_DRIVER_DEF='"sim/cublas/driver.def"'
sim_cublas_cflags = $(AM_CFLAGS) $(MS_PIC_CFLAGS) -pthread
sim_cublas_ldflags = $(AM_LDFLAGS) -shared -pthread $(MS_NO_UNDEFINED) -Wl,-Bsymbolic

EXTRA_DIST += src/sim/cublas/cublas_12.map src/sim/cublas/cublas_13.map \
	src/sim/cublas/cublasLt_12.map src/sim/cublas/cublasLt_13.map

libcublasLt_so_12_SOURCES = $(sim_cublaslt_sources)
libcublasLt_so_12_CPPFLAGS = $(sim_cublas_cppflags) -DSIM_CUBLAS=12 -DSIM_LT \
	-DSIM_EXPORTS='"sim/cublas/lt_exports_12.def"'
libcublasLt_so_12_CFLAGS = $(sim_cublas_cflags)
libcublasLt_so_12_LDFLAGS = $(sim_cublas_ldflags) -Wl,-soname,libcublasLt.so.12 \
	-Wl,--version-script=$(srcdir)/src/sim/cublas/cublasLt_12.map
libcublasLt_so_12_LDADD = -ldl
EXTRA_libcublasLt_so_12_DEPENDENCIES = src/sim/cublas/cublasLt_12.map

libcublas_so_12_SOURCES = $(sim_cublas_sources)
libcublas_so_12_CPPFLAGS = $(sim_cublas_cppflags) -DSIM_CUBLAS=12 \
	-DSIM_EXPORTS='"sim/cublas/exports_12.def"'
libcublas_so_12_CFLAGS = $(sim_cublas_cflags)
libcublas_so_12_LDFLAGS = $(sim_cublas_ldflags) -Wl,-soname,libcublas.so.12 \
	-Wl,--version-script=$(srcdir)/src/sim/cublas/cublas_12.map
libcublas_so_12_LDADD = -ldl
EXTRA_libcublas_so_12_DEPENDENCIES = src/sim/cublas/cublas_12.map

libcublasLt_so_13_SOURCES = $(sim_cublaslt_sources)
libcublasLt_so_13_CPPFLAGS = $(sim_cublas_cppflags) -DSIM_CUBLAS=13 -DSIM_LT \
	-DSIM_EXPORTS='"sim/cublas/lt_exports_13.def"'
libcublasLt_so_13_CFLAGS = $(sim_cublas_cflags)
libcublasLt_so_13_LDFLAGS = $(sim_cublas_ldflags) -Wl,-soname,libcublasLt.so.13 \
	-Wl,--version-script=$(srcdir)/src/sim/cublas/cublasLt_13.map
libcublasLt_so_13_LDADD = -ldl
EXTRA_libcublasLt_so_13_DEPENDENCIES = src/sim/cublas/cublasLt_13.map

libcublas_so_13_SOURCES = $(sim_cublas_sources)
libcublas_so_13_CPPFLAGS = $(sim_cublas_cppflags) -DSIM_CUBLAS=13 \
	-DSIM_EXPORTS='"sim/cublas/exports_13.def"'
libcublas_so_13_CFLAGS = $(sim_cublas_cflags)
libcublas_so_13_LDFLAGS = $(sim_cublas_ldflags) -Wl,-soname,libcublas.so.13 \
	-Wl,--version-script=$(srcdir)/src/sim/cublas/cublas_13.map
libcublas_so_13_LDADD = -ldl
EXTRA_libcublas_so_13_DEPENDENCIES = src/sim/cublas/cublas_13.map
