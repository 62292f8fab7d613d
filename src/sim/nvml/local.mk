# src/sim/nvml: the simulated management library; what its rooms offer each other is in nvml.h
sim_PROGRAMS += libnvidia-ml.so.1
libnvidia_ml_so_1_SOURCES = \
	src/gpu/abi/cuda_driver.h src/gpu/abi/nvml.h src/sim/cuda/cards.def src/sim/cuda/attributes.def src/sim/cuda/identity.h \
	src/sim/cuda/sim.h src/sim/cuda/usage.h src/sim/cuda/card.c src/sim/cuda/config.c src/sim/cuda/identity.c \
	src/sim/cuda/survey.c src/sim/log.h src/sim/log.c src/sim/nvml/nvml.h src/sim/nvml/exports.def src/sim/nvml/device.c src/sim/nvml/init.c \
	src/sim/nvml/memory.c src/sim/nvml/stubs.c src/sim/nvml/system.c
libnvidia_ml_so_1_CFLAGS = $(AM_CFLAGS) $(MS_PIC_CFLAGS) -pthread
libnvidia_ml_so_1_LDFLAGS = $(AM_LDFLAGS) -shared -pthread -Wl,-soname,libnvidia-ml.so.1 -Wl,-Bsymbolic $(MS_NO_UNDEFINED)
