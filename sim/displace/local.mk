# sim/displace: stands before dlopen in programs that run on the simulator. Never sanitized: it is loaded into any program.
sim_PROGRAMS += libmemsim-displace.so
libmemsim_displace_so_SOURCES = sim/displace/displace.h sim/displace/displace.c sim/displace/needs.c
libmemsim_displace_so_CFLAGS = -std=gnu11 $(MS_WARNINGS) -fPIC -fvisibility=hidden
libmemsim_displace_so_LDFLAGS = -shared -Wl,-soname,libmemsim-displace.so -Wl,-z,defs
libmemsim_displace_so_LDADD = -ldl
