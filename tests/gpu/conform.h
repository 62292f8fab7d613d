/*
 * conform.h: how the parts of `conformance` say what they saw. Each part has a file, or shares one with its
 * like.
 */
#ifndef MS_TESTS_GPU_CONFORM_H
#define MS_TESTS_GPU_CONFORM_H

#include "kit.h"

/** One line: "conform PART.NAME VALUE". No value holds an address, a time, or anything else that varies. */
__attribute__((format(printf, 2, 3))) void say(const char *name, const char *format, ...);

/** The status that a call answers. */
#define say_status(name, call)   say(name, "%d", (int)(call))
#define say_yes(name, condition) say(name, "%s", (condition) ? "yes" : "no")

/** Device memory, or the part ends. */
CUdeviceptr conform_get(size_t bytes);
size_t conform_free_bytes(void);

/** The byte at an address of device memory, -1 if it cannot be read. */
int conform_byte(CUdeviceptr address);

/** Memory mapped by handle, with its handle. */
CUdeviceptr conform_map(size_t bytes, CUmemGenericAllocationHandle *handle_p);
extern const CUmemAllocationProp conform_prop;

void conform_status(int argc, char **argv);
void conform_runtime(int argc, char **argv);
void conform_thread(int argc, char **argv);
void conform_align(int argc, char **argv);
void conform_range(int argc, char **argv);
void conform_attributes(int argc, char **argv);
void conform_meminfo(int argc, char **argv);
void conform_free(int argc, char **argv);
void conform_stale(int argc, char **argv);
void conform_order(int argc, char **argv);
void conform_pool(int argc, char **argv);
void conform_reuse(int argc, char **argv);
void conform_vmm(int argc, char **argv);
void conform_ipc(int argc, char **argv);
void conform_importer(int argc, char **argv);
void conform_context(int argc, char **argv);
void conform_reset(int argc, char **argv);
void conform_illegal(int argc, char **argv);
void conform_trap(int argc, char **argv);
void conform_capture(int argc, char **argv);
void conform_questions(int argc, char **argv);
void conform_graph(int argc, char **argv);
void conform_share(int argc, char **argv);
void conform_sharer(int argc, char **argv);

#endif
