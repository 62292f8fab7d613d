# tests/hooks: tests listed here run under make check; see docs/internals/testing.md
#
# Programs that the tests attack memshim with. Libraries among them are shared objects built as programs; what links
# with the simulator names it by file, so that its SONAME is recorded and no path.
ms_module = -shared
ms_module_cflags = $(AM_CFLAGS) -fPIC

# A library between the program and the runtime, and one user of it per order of linking.
check_PROGRAMS += tests/hooks/libchain.so tests/hooks/chain_linked tests/hooks/chain_user
tests_hooks_libchain_so_SOURCES = tests/hooks/chain.c tests/hooks/chain.h
tests_hooks_libchain_so_CFLAGS = $(ms_module_cflags)
tests_hooks_libchain_so_LDFLAGS = $(AM_LDFLAGS) $(ms_module) -Wl,-soname,libchain.so
tests_hooks_chain_linked_SOURCES = tests/hooks/chain_user.c tests/hooks/chain.h
tests_hooks_chain_linked_CFLAGS = $(AM_CFLAGS) -fno-builtin-atol
tests_hooks_chain_linked_LDADD = tests/hooks/libchain.so libcudart.so.13
tests_hooks_chain_user_CFLAGS = $(AM_CFLAGS) -fno-builtin-atol
tests_hooks_chain_user_LDADD = libcudart.so.13

check_PROGRAMS += tests/hooks/probe tests/hooks/lookups_user tests/hooks/last_error
tests_hooks_last_error_LDADD = libcudart.so.13

# What is answered in the runtime's own hook, on either runtime.
check_PROGRAMS += tests/hooks/direct tests/hooks/direct12 tests/hooks/direct_stream tests/hooks/stepped
tests_hooks_stepped_LDADD = libcudart.so.13
tests_hooks_direct_stream_LDADD = libcudart.so.13 libcuda.so.1
tests_hooks_direct_LDADD = libcudart.so.13 libcuda.so.1
tests_hooks_direct12_SOURCES = tests/hooks/direct.c
tests_hooks_direct12_LDADD = libcudart.so.12 libcuda.so.1

check_PROGRAMS += tests/hooks/libcudart.so.11.0 tests/hooks/libcupti.so.13 tests/hooks/libcupti_user.so
tests_hooks_libcudart_so_11_0_SOURCES = tests/hooks/old_runtime.c
tests_hooks_libcudart_so_11_0_CFLAGS = $(ms_module_cflags)
tests_hooks_libcudart_so_11_0_LDFLAGS = $(AM_LDFLAGS) $(ms_module) -Wl,-soname,libcudart.so.11.0
tests_hooks_libcupti_so_13_SOURCES = tests/hooks/cupti.c
tests_hooks_libcupti_so_13_CFLAGS = $(ms_module_cflags)
tests_hooks_libcupti_so_13_LDFLAGS = $(AM_LDFLAGS) $(ms_module) -Wl,-soname,libcupti.so.13 \
	-Wl,--version-script=$(srcdir)/tests/hooks/cupti.map
tests_hooks_libcupti_so_13_DEPENDENCIES = tests/hooks/cupti.map
tests_hooks_libcupti_user_so_SOURCES = tests/hooks/cupti_user.c
tests_hooks_libcupti_user_so_CFLAGS = $(ms_module_cflags)
tests_hooks_libcupti_user_so_LDFLAGS = $(AM_LDFLAGS) $(ms_module) -Wl,-soname,libcupti_user.so
tests_hooks_libcupti_user_so_LDADD = tests/hooks/libcupti.so.13
EXTRA_DIST += tests/hooks/cupti.map

# Plugins on either runtime, and the program that opens them in every way.
check_PROGRAMS += tests/hooks/module12.so tests/hooks/module13.so tests/hooks/opener
tests_hooks_module12_so_SOURCES = tests/hooks/module.c tests/hooks/module.h
tests_hooks_module12_so_CFLAGS = $(ms_module_cflags)
tests_hooks_module12_so_LDFLAGS = $(AM_LDFLAGS) $(ms_module)
tests_hooks_module12_so_LDADD = libcudart.so.12
tests_hooks_module13_so_SOURCES = tests/hooks/module.c tests/hooks/module.h
tests_hooks_module13_so_CFLAGS = $(ms_module_cflags)
tests_hooks_module13_so_LDFLAGS = $(AM_LDFLAGS) $(ms_module)
tests_hooks_module13_so_LDADD = libcudart.so.13

# Callers of the runtime where there are several copies of it.
check_PROGRAMS += tests/hooks/copies tests/hooks/copies_linked tests/hooks/copies_plugin.so tests/hooks/copies_others.so \
	tests/hooks/copies_unlinked.so tests/hooks/copies_deps.so
tests_hooks_copies_linked_SOURCES = tests/hooks/copies.c tests/hooks/copies_calls.c tests/hooks/copies_calls.h
tests_hooks_copies_linked_CPPFLAGS = $(AM_CPPFLAGS) -DCOPIES_LINKED
tests_hooks_copies_linked_LDADD = libcudart.so.13
tests_hooks_copies_plugin_so_SOURCES = tests/hooks/copies_calls.c tests/hooks/copies_calls.h
tests_hooks_copies_plugin_so_CFLAGS = $(ms_module_cflags)
tests_hooks_copies_plugin_so_LDFLAGS = $(AM_LDFLAGS) $(ms_module)
tests_hooks_copies_plugin_so_LDADD = libcudart.so.13
tests_hooks_copies_others_so_SOURCES = tests/hooks/copies_calls.c tests/hooks/copies_calls.h
tests_hooks_copies_others_so_CPPFLAGS = $(AM_CPPFLAGS) -DCOPIES_OTHERS
tests_hooks_copies_others_so_CFLAGS = $(ms_module_cflags)
tests_hooks_copies_others_so_LDFLAGS = $(AM_LDFLAGS) $(ms_module) -Wl,-z,now
tests_hooks_copies_others_so_LDADD = libcudart.so.13
tests_hooks_copies_unlinked_so_SOURCES = tests/hooks/copies_calls.c tests/hooks/copies_calls.h
tests_hooks_copies_unlinked_so_CFLAGS = $(ms_module_cflags)
tests_hooks_copies_unlinked_so_LDFLAGS = $(AM_LDFLAGS) $(ms_module)
tests_hooks_copies_deps_so_CFLAGS = $(ms_module_cflags)
tests_hooks_copies_deps_so_LDFLAGS = $(AM_LDFLAGS) $(ms_module) -Wl,--no-as-needed
tests_hooks_copies_deps_so_LDADD = libcudart.so.13

# How much of a thread's stack each kind of call takes.
check_PROGRAMS += tests/hooks/small_stacks tests/hooks/small_stacks_others
tests_hooks_small_stacks_others_SOURCES = tests/hooks/small_stacks_others.c \
	tests/hooks/small_stacks_paint.c tests/hooks/small_stacks_paint.h
tests_hooks_small_stacks_others_LDFLAGS = $(AM_LDFLAGS) -Wl,-z,now
tests_hooks_small_stacks_SOURCES = tests/hooks/small_stacks.c tests/hooks/small_stacks_paint.c \
	tests/hooks/small_stacks_paint.h
tests_hooks_small_stacks_LDFLAGS = $(AM_LDFLAGS) -Wl,-z,now
tests_hooks_small_stacks_LDADD = libcudart.so.13 libcuda.so.1

# Constructors.
check_PROGRAMS += tests/hooks/libearly.so tests/hooks/early_linked tests/hooks/early_opened
tests_hooks_libearly_so_SOURCES = tests/hooks/early.c
tests_hooks_libearly_so_CFLAGS = $(ms_module_cflags)
tests_hooks_libearly_so_LDFLAGS = $(AM_LDFLAGS) $(ms_module) -Wl,-soname,libearly.so -pthread
tests_hooks_libearly_so_LDADD = libcuda.so.1
tests_hooks_early_linked_SOURCES = tests/hooks/early_user.c
tests_hooks_early_linked_CPPFLAGS = $(AM_CPPFLAGS) -DEARLY_LINKED
tests_hooks_early_linked_LDADD = tests/hooks/libearly.so libcuda.so.1
tests_hooks_early_opened_SOURCES = tests/hooks/early_user.c

# A driver without locks, in a directory of its own, and what runs on it.
check_PROGRAMS += tests/hooks/plain/libcuda.so.1 tests/hooks/threads tests/hooks/exceptions tests/hooks/json_host \
	tests/hooks/inert
tests_hooks_plain_libcuda_so_1_SOURCES = tests/hooks/plain_driver.c
tests_hooks_plain_libcuda_so_1_CFLAGS = $(ms_module_cflags)
tests_hooks_plain_libcuda_so_1_LDFLAGS = $(AM_LDFLAGS) $(ms_module) -Wl,-soname,libcuda.so.1
tests_hooks_threads_LDADD = tests/hooks/plain/libcuda.so.1
tests_hooks_exceptions_CFLAGS = $(AM_CFLAGS) -fexceptions
tests_hooks_exceptions_LDADD = tests/hooks/plain/libcuda.so.1
tests_hooks_json_host_LDFLAGS = $(AM_LDFLAGS) -rdynamic
tests_hooks_json_host_LDADD = tests/hooks/plain/libcuda.so.1

# A driver that has more ways to begin a capture.
check_PROGRAMS += tests/hooks/later/libcuda.so.1 tests/hooks/later_user tests/hooks/later_linked
tests_hooks_later_libcuda_so_1_SOURCES = tests/hooks/later_driver.c tests/hooks/later.h
EXTRA_tests_hooks_later_libcuda_so_1_DEPENDENCIES = $(srcdir)/tests/hooks/plain_driver.c
tests_hooks_later_libcuda_so_1_CFLAGS = $(ms_module_cflags)
tests_hooks_later_libcuda_so_1_LDFLAGS = $(AM_LDFLAGS) $(ms_module) -Wl,-soname,libcuda.so.1
tests_hooks_later_user_LDADD = tests/hooks/later/libcuda.so.1 -ldl -lpthread
tests_hooks_later_linked_SOURCES = tests/hooks/later_user.c tests/hooks/later.h
tests_hooks_later_linked_CPPFLAGS = $(AM_CPPFLAGS) -DLATER_LINKED
tests_hooks_later_linked_LDADD = tests/hooks/later/libcuda.so.1 -ldl -lpthread

# Every class of allocation, with the vendor's headers and libraries where there are any.
check_PROGRAMS += tests/hooks/every_class
tests_hooks_every_class_SOURCES = tests/hooks/every_class.c tests/hooks/every_class_twin.c \
	tests/hooks/every_class.h
if HAVE_CUDA_TOOLKIT
tests_hooks_every_class_CPPFLAGS = $(AM_CPPFLAGS) -DWITH_VENDOR_HEADERS -isystem $(CUDA_HOME)/include
else
tests_hooks_every_class_CPPFLAGS = $(AM_CPPFLAGS)
endif
tests_hooks_every_class_LDADD = libcudart.so.13 libcuda.so.1

# What the driver takes for contexts and modules.
check_PROGRAMS += tests/hooks/takers_user
tests_hooks_takers_user_LDADD = libcudart.so.13 libcuda.so.1
tests_hooks_takers_user_CFLAGS = $(AM_CFLAGS) -g -pthread

# What each policy of the pool changes.
check_PROGRAMS += tests/hooks/policies
tests_hooks_policies_LDADD = libcudart.so.13 libcuda.so.1

# A runtime that comes and goes.
check_PROGRAMS += tests/hooks/reloader

# Every call with nothing in its arguments, and every one refused in turn.
check_PROGRAMS += tests/hooks/nothing tests/hooks/refused
tests_hooks_refused_LDADD = libcudart.so.13 libcuda.so.1

check_PROGRAMS += tests/hooks/import_again
tests_hooks_import_again_LDADD = libcudart.so.13

check_PROGRAMS += tests/hooks/ipc_pair
tests_hooks_ipc_pair_LDADD = libcudart.so.13

EXTRA_DIST += tests/hooks/lib.sh tests/hooks/hooklib.py tests/hooks/throw_module.cc tests/hooks/secure.c

ms_hook_tests = tests/hooks/every_class.py tests/hooks/nothing.py tests/hooks/takers.py tests/hooks/fail_nth.py tests/hooks/differential.py tests/hooks/ipc.sh \
	tests/hooks/interpose.sh tests/hooks/direct.sh tests/hooks/later.sh tests/hooks/threads.sh tests/hooks/neighbours.sh tests/hooks/inert.sh tests/hooks/policies.sh tests/hooks/copies.sh tests/hooks/small_stacks.py
dist_check_SCRIPTS += $(ms_hook_tests)

# What is read right behind a free with MEMSHIM_POISON.
check_PROGRAMS += tests/hooks/poisoned
tests_hooks_poisoned_LDADD = libcudart.so.13 libcuda.so.1
dist_check_SCRIPTS += tests/hooks/poisoned.py

check_PROGRAMS += tests/hooks/misfrees
tests_hooks_misfrees_SOURCES = tests/hooks/misfrees.c tests/hooks/misfrees_hip.c tests/hooks/misfrees.h
tests_hooks_misfrees_LDADD = libcudart.so.13 libcuda.so.1 libnccl.so.2 libamdhip64.so.6 libascendcl.so
dist_check_SCRIPTS += tests/hooks/misfrees.py
