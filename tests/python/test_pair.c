/* test_pair.c - which native frame runs which Python frames, on stacks that are made up. */
#include "config.h"

#include "unwind/frame.h"
#include "unwind/python/pair.h"

#include "tests/tap.h"

/* Native frames are told as small letters, Python frames as capitals: "bAc" is b, called by the function A,
 * which the loop's frame c runs. Frame i of the native ones has the stack from 0x1000 * (i + 1) on. */
enum { STACK_END = 0x100000, LOOP = 'w', LOOP_END = 'y' };

static uintptr_t frames[26], sps[26];
static struct ms_python_frame python[26];
static uintptr_t merged[MS_PAIRED_MAX];

static struct ms_pairing made(unsigned natives, const uintptr_t *entries, unsigned pythons)
{
    for (unsigned i = 0; i < natives; i++) {
        frames[i] = 'a' + i;
        sps[i] = 0x1000 * (i + 1);
    }
    for (unsigned i = 0; i < pythons; i++)
        python[i] = (struct ms_python_frame){.code = i, .offset = 2 * i, .entry = entries[i]};
    return (struct ms_pairing){.frames = frames,
                               .sps = sps,
                               .count = natives,
                               .shown = natives,
                               .stack_end = STACK_END,
                               .python = python,
                               .python_count = pythons};
}

static void becomes(const struct ms_pairing *pairing, const char *expected, const char *what)
{
    char text[64] = "";
    unsigned count = ms_pair_frames(pairing, merged);

    for (unsigned i = 0; i < count; i++)
        text[i] = (char)(ms_frame_kind(merged[i]) == MS_FRAME_PYTHON ? 'A' + ms_frame_code(merged[i])
                                                                     : (uint32_t)merged[i]);
    is_str(text, expected, "%s", what);
}

#define PAIRING(natives, ...)                                                                                \
    made(natives, (const uintptr_t[]){__VA_ARGS__},                                                          \
         sizeof((const uintptr_t[]){__VA_ARGS__}) / sizeof(uintptr_t))

static void check_addresses(void)
{
    struct ms_pairing pairing = PAIRING(6, 0, 0x3010, 0x5fff);
    becomes(&pairing, "abABcdCef", "runs come right inside of the frames that hold their records");
    is_int(ms_frame_offset(merged[3]), 2, "with their offsets");
    pairing = PAIRING(3, 0x1000);
    becomes(&pairing, "Aabc", "the first word of an extent is in it");
    pairing = PAIRING(3, 0x3008, 0x9000);
    becomes(&pairing, "abcAB", "what may lie in the last frame or beyond follows");
    pairing.is_cut = true, pairing.end = 0x4000;
    becomes(&pairing, "abAcB", "where its extent is known it is told");
    pairing = PAIRING(6, 0x3010, 0x5010);
    pairing.shown = 4;
    becomes(&pairing, "abAcdB", "what runs beyond the frames that are shown follows them");
    pairing = PAIRING(6, 0x5010, 0x3010);
    becomes(&pairing, "", "records in the wrong order pair with nothing");
    pairing = PAIRING(6, 0x3010, 0x3020);
    becomes(&pairing, "", "nor do two in one frame");
    pairing = PAIRING(6, 0x800);
    becomes(&pairing, "", "nor one further in than the stack");
    pairing = PAIRING(6, 0x3010, STACK_END);
    becomes(&pairing, "", "nor one on another stack");
    pairing = PAIRING(6, 0x3010, 0, 0);
    becomes(&pairing, "", "nor a run whose end was not told");
    pairing = PAIRING(3, 0x9000);
    pairing.stack_end = 0;
    becomes(&pairing, "", "nor anything beyond a stack that is not known");
    pairing = PAIRING(0, 0x3000);
    becomes(&pairing, "", "nor anything without native frames");
}

static struct ms_pairing counted(const char *native, unsigned pythons)
{
    const uintptr_t ones[] = {1, 1, 1, 1};
    struct ms_pairing pairing = made((unsigned)strlen(native), ones, pythons);

    for (unsigned i = 0; native[i]; i++)
        frames[i] = (unsigned char)native[i];
    pairing.loop = LOOP, pairing.loop_end = LOOP_END;
    return pairing;
}

/* A return address lies behind the call: of [w, y) x and y are returned to. */
static void check_counts(void)
{
    struct ms_pairing pairing = counted("axbyc", 2);
    becomes(&pairing, "aAxbByc", "each Python frame has a frame of the loop");
    pairing = counted("axbwc", 2);
    becomes(&pairing, "", "a frame of the loop too few");
    pairing.is_cut = true;
    becomes(&pairing, "aAxbwcB", "unless the stack is cut: then the rest follows");
    pairing = counted("axbyc", 1);
    becomes(&pairing, "", "a frame of the loop too many");
    pairing = counted("axbyc", 2);
    pairing.shown = 2;
    becomes(&pairing, "aAxB", "counted in all, told as far as is shown");
    pairing.loop = pairing.loop_end = 0;
    becomes(&pairing, "", "nothing is counted where the loop is not known");
}

int main(void)
{
    plan(0);
    check_addresses();
    check_counts();
    return done();
}
