/* memshim.h - a program names the phases of its own time, and the pieces that an allocator of its own gives
 * it, and memshim's report says what memory did in each phase, and which line holds which piece.
 *
 * Nothing is linked: the functions are there where libmemshim.so is preloaded, and the macros do nothing
 * where it is not (a weak reference that is NULL; position independent code needs nothing else).
 *
 *     #include <memshim.h>
 *
 *     for (int step = 0; step < steps; step++) {
 *         MEMSHIM_PHASE_PUSH("step");
 *         train();
 *         MEMSHIM_PHASE_POP();
 *     }
 *
 * Phases of one name are one row of the report: give repeated ones one name, without a number. Any thread may
 * call these, from a signal handler too. Names are UTF-8; 255 bytes of them are kept.
 *
 * An allocator that takes large blocks of the vendor's and gives pieces of them says so
 * (docs/user/tensors.md):
 *
 *     static uint64_t pool;
 *     pool = MEMSHIM_POOL("my arena");
 *     MEMSHIM_INNER_ALLOC(pool, piece, bytes);
 *     MEMSHIM_INNER_FREE(piece);
 *
 * A piece has the call stack of MEMSHIM_INNER_ALLOC. It is reported after it was given, and before it is
 * given back, so that nobody else has the address meanwhile; what is left of a block when that is freed ends
 * with it. */
#ifndef MEMSHIM_H
#define MEMSHIM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The calling thread is in this phase from now on, until its pop. Phases nest. Returns how many it was in
 * already; -1 where memshim is not active. */
__attribute__((weak)) int memshim_phase_push(const char *name);
/** Ends the thread's latest phase. Returns how many it is in still, -1 if it was in none. */
__attribute__((weak)) int memshim_phase_pop(void);
/** Begins a phase of the whole process, which any thread may end, in any order. Returns its number, 0 where
 * there is none. */
__attribute__((weak)) uint64_t memshim_phase_begin(const char *name);
__attribute__((weak)) void memshim_phase_end(uint64_t phase);
/** Counts a moment under a name. */
__attribute__((weak)) void memshim_phase_mark(const char *name);

/** The pool of this name, for memshim_inner_alloc; the same for the same name. 63 bytes of it are kept. 0
 * where memshim is not active, or has no room for one more of 1,024. */
__attribute__((weak)) uint64_t memshim_pool(const char *name);
/** The pool (0: none) gave the program `bytes` at `address`, which is memory of a device. A piece that is
 * known there ends: its end was not told. */
__attribute__((weak)) void memshim_inner_alloc(uint64_t pool, const void *address, uint64_t bytes);
/** The piece at `address` is given back. Nothing happens if none is known there. */
__attribute__((weak)) void memshim_inner_free(const void *address);

#ifdef __cplusplus
}
#endif

#define MEMSHIM_PHASE_PUSH(name)  (memshim_phase_push ? memshim_phase_push(name) : -1)
#define MEMSHIM_PHASE_POP()       (memshim_phase_pop ? memshim_phase_pop() : -1)
#define MEMSHIM_PHASE_BEGIN(name) (memshim_phase_begin ? memshim_phase_begin(name) : 0)
#define MEMSHIM_PHASE_END(phase)  (memshim_phase_end ? memshim_phase_end(phase) : (void)(phase))
#define MEMSHIM_PHASE_MARK(name)  (memshim_phase_mark ? memshim_phase_mark(name) : (void)(name))
#define MEMSHIM_POOL(name)        (memshim_pool ? memshim_pool(name) : 0)
#define MEMSHIM_INNER_ALLOC(pool, address, bytes)                                                            \
    (memshim_inner_alloc ? memshim_inner_alloc(pool, address, bytes) : (void)(bytes))
#define MEMSHIM_INNER_FREE(address) (memshim_inner_free ? memshim_inner_free(address) : (void)(address))

#endif
