/*
 * A fuzz target: linked with libFuzzer it is driven by that (scripts/fuzz), else by driver.c, which changes
 * the seed at random for a few seconds.
 */
#ifndef MS_TESTS_FUZZ_H
#define MS_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* One input. What it finds is a crash, a sanitizer's complaint, or abort(). */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Sound input to start from: the number-th, 0 past the last. Returns its size, at most `max`. */
size_t fuzz_seed(unsigned number, uint8_t *data, size_t max);

/* For targets that know better than bytes what to change; `seed` is random. LLVMFuzzerMutate changes
 * bytes. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* What once broke a reader: inputs that were found, in tests/fuzz/found/NAME. */
extern const char fuzz_name[];

/* A descriptor of a file in memory that holds these bytes; fuzz_path() names it. Both are good until the next
 * call. */
int fuzz_file(const uint8_t *data, size_t size);
const char *fuzz_path(void);

#endif
