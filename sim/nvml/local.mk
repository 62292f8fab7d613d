# sim/nvml: the simulated management library; what its rooms offer each other is in nvml.h
sim_PROGRAMS += libnvidia-ml.so.1
libnvidia_ml_so_1_SOURCES = src/vendor/abi/cuda_driver.h src/vendor/abi/nvml.h sim/cuda/cards.def \
	sim/cuda/attributes.def sim/cuda/device/identity.h sim/cuda/sim.h sim/cuda/device/usage.h \
	sim/cuda/device/card.c sim/cuda/device/config.c sim/cuda/device/identity.c sim/cuda/device/survey.c \
	sim/log.h sim/log.c sim/nvml/nvml.h sim/nvml/exports.def sim/nvml/device.c sim/nvml/init.c \
	sim/nvml/memory.c sim/nvml/stubs.c sim/nvml/system.c
libnvidia_ml_so_1_LDADD =
libnvidia_ml_so_1_CFLAGS = $(AM_CFLAGS) $(MS_PIC_CFLAGS) -pthread
libnvidia_ml_so_1_LDFLAGS = $(AM_LDFLAGS) -shared -Wl,-soname,libnvidia-ml.so.1 -Wl,-Bsymbolic $(MS_NO_UNDEFINED)
