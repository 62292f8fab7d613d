/* test_garbage.c - whatever lies on a stack, a walk ends and nothing faults.
 *
 * Stacks of random words are made, with addresses of code, of other words of the stack and of nothing among
 * them, the page after the stack not readable, and walks are begun in them. What is tested is that the
 * program survives, that no walk returns more frames than asked for, and that no walk hangs. */
#include "config.h"

#include <math.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "unwind/native/rules.h"
#include "tests/stack/snap.h"
#include "tests/tap.h"

enum { STACK_BYTES = 64 << 10, WORDS = STACK_BYTES / 8, ROUNDS = 300, STARTS = 40 };

static uint64_t seed = 88172645463325252u;

static uint64_t roll(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

static uintptr_t random_word(uintptr_t stack)
{
    static void *const code[] = {(void *)snprintf, (void *)qsort, (void *)frames_call, (void *)ms_stack_walk,
                                 (void *)memcpy,   (void *)mmap,  (void *)getenv};
    switch (roll() % 8) {
    case 0:
        return roll();
    case 1:
        return roll() % 4096;
    case 2:
    case 3:
        return stack + roll() % (STACK_BYTES + 64);
    case 4:
        return (stack + roll() % STACK_BYTES) & ~(uintptr_t)7;
    default:
        return (uintptr_t)code[roll() % MS_ARRAY_LEN(code)] + roll() % 2048;
    }
}

static unsigned walk_at(const uintptr_t *frame, enum ms_walk walk, uintptr_t *frames)
{
    return ms_stack_walk(walk, frame, (const void *)frame[1], frames, SNAP_MAX);
}

static void test_stacks(enum ms_walk walk, const char *name)
{
    static uintptr_t frames[SNAP_MAX];
    char *memory = mmap(NULL, STACK_BYTES + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uintptr_t *words = (uintptr_t *)memory;
    unsigned longest = 0, walks = 0;
    mprotect(memory + STACK_BYTES, 4096, PROT_NONE);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < WORDS; i++)
            words[i] = random_word((uintptr_t)memory);
        for (int start = 0; start < STARTS; start++) {
            unsigned count = walk_at(words + roll() % (WORDS - 1), walk, frames);
            longest = count > longest ? count : longest;
            walks++;
        }
    }
    ok(walks == ROUNDS * STARTS && longest >= 1 && longest <= SNAP_MAX,
       "%s: %u walks, the longest of %u frames", name, walks, longest);
    munmap(memory, STACK_BYTES + 4096);
}

#ifdef MS_HAVE_LIBUNWIND
/* Any address may turn up as a return address, and be asked for. */
static void test_addresses(void)
{
    unsigned kinds[16] = {0};
    for (int i = 0; i < 3000; i++) {
        uintptr_t pc = random_word((uintptr_t)&kinds);
        kinds[ms_rule_kind(ms_rule_learn(pc, roll() & 1, 0))]++;
    }
    is_u64(kinds[MS_RULE_NONE], 0, "every address has a rule, be it to stop");
    ok(kinds[MS_RULE_STOP] && kinds[MS_RULE_SP], "some are no code, some are");
}
#endif

int main(void)
{
    plan(0);
    test_stacks(MS_WALK_FP, "by frame pointers");
#ifdef MS_HAVE_LIBUNWIND
    test_stacks(MS_WALK_UNWIND, "by rules");
    test_addresses();
#else
    skip(1, "libunwind is not built in");
#endif
    return done();
}
