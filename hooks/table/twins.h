/* twins.h - rows of the .def files that stand for several functions: what they have in common is said once.
 *
 * Floor 3, for the .def files, whoever includes them: each row becomes MS_HOOK and MS_PASS as the includer
 * has them.
 *
 *   MS_HOOKS      two functions of one signature that mean the same, each with its own lookup
 *   MS_TWINS      the second is of the calling thread's own stream: `symbol` and `symbol##suffix`; the lookup
 *                 is (name, version, the second's version)
 *   MS_TWINS_ON   the same where the stream, or the flags of a lookup, matter: (field, argument)
 *   MS_PASSES     up to 16 functions that are passed for one reason */
#ifndef MS_HOOKS_TABLE_TWINS_H
#define MS_HOOKS_TABLE_TWINS_H

#define MS_HOOKS(result, first, second, params, args, class, outcome, look, look_second, ...)                \
    MS_HOOK(result, first, params, args, class, outcome, look, __VA_ARGS__)                                  \
    MS_HOOK(result, second, params, args, class, outcome, look_second, __VA_ARGS__)

#define MS_TWIN_LOOK(name, version, version_twin)  (name, version, 0)
#define MS_TWIN_OTHER(name, version, version_twin) (name, version_twin, 1)
#define MS_TWINS(result, symbol, suffix, params, args, class, outcome, look, ...)                            \
    MS_HOOKS(result, symbol, symbol##suffix, params, args, class, outcome, MS_TWIN_LOOK look,                \
             MS_TWIN_OTHER look, __VA_ARGS__)

#define MS_TWIN_FIELD(field, value)       .field = MS_TWIN_##field(value)
#define MS_TWIN_FIELD_OTHER(field, value) .field = MS_TWIN_OTHER_##field(value)
#define MS_TWIN_stream(value)             (uintptr_t)(value)
#define MS_TWIN_OTHER_stream(value)       MS_STREAM_PTSZ(value)
#define MS_TWIN_flags(value)              (value)
#define MS_TWIN_OTHER_flags(value)        MS_FLAGS_PTSZ(value)
#define MS_TWINS_ON(result, symbol, suffix, params, args, class, outcome, look, on, ...)                     \
    MS_TWINS_APART(result, symbol, symbol##suffix, params, args, class, outcome, MS_TWIN_LOOK look,          \
                   MS_TWIN_OTHER look, MS_TWIN_FIELD on, MS_TWIN_FIELD_OTHER on, __VA_ARGS__)
#define MS_TWINS_APART(result, first, second, params, args, class, outcome, look, look_second, field,        \
                       field_second, ...)                                                                    \
    MS_HOOK(result, first, params, args, class, outcome, look, __VA_ARGS__, field)                           \
    MS_HOOK(result, second, params, args, class, outcome, look_second, __VA_ARGS__, field_second)

/* class, reason, symbols */
#define MS_PASS_1(c, r, s)       MS_PASS(s, c, r)
#define MS_PASS_2(c, r, s, ...)  MS_PASS(s, c, r) MS_PASS_1(c, r, __VA_ARGS__)
#define MS_PASS_3(c, r, s, ...)  MS_PASS(s, c, r) MS_PASS_2(c, r, __VA_ARGS__)
#define MS_PASS_4(c, r, s, ...)  MS_PASS(s, c, r) MS_PASS_3(c, r, __VA_ARGS__)
#define MS_PASS_5(c, r, s, ...)  MS_PASS(s, c, r) MS_PASS_4(c, r, __VA_ARGS__)
#define MS_PASS_6(c, r, s, ...)  MS_PASS(s, c, r) MS_PASS_5(c, r, __VA_ARGS__)
#define MS_PASS_7(c, r, s, ...)  MS_PASS(s, c, r) MS_PASS_6(c, r, __VA_ARGS__)
#define MS_PASS_8(c, r, s, ...)  MS_PASS(s, c, r) MS_PASS_7(c, r, __VA_ARGS__)
#define MS_PASS_9(c, r, s, ...)  MS_PASS(s, c, r) MS_PASS_8(c, r, __VA_ARGS__)
#define MS_PASS_10(c, r, s, ...) MS_PASS(s, c, r) MS_PASS_9(c, r, __VA_ARGS__)
#define MS_PASS_11(c, r, s, ...) MS_PASS(s, c, r) MS_PASS_10(c, r, __VA_ARGS__)
#define MS_PASS_12(c, r, s, ...) MS_PASS(s, c, r) MS_PASS_11(c, r, __VA_ARGS__)
#define MS_PASS_13(c, r, s, ...) MS_PASS(s, c, r) MS_PASS_12(c, r, __VA_ARGS__)
#define MS_PASS_14(c, r, s, ...) MS_PASS(s, c, r) MS_PASS_13(c, r, __VA_ARGS__)
#define MS_PASS_15(c, r, s, ...) MS_PASS(s, c, r) MS_PASS_14(c, r, __VA_ARGS__)
#define MS_PASS_16(c, r, s, ...) MS_PASS(s, c, r) MS_PASS_15(c, r, __VA_ARGS__)
#define MS_PASS_CHOSEN(s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15, s16, chosen, ...)   \
    chosen
#define MS_PASSES(c, r, ...)                                                                                 \
    MS_PASS_CHOSEN(__VA_ARGS__, MS_PASS_16, MS_PASS_15, MS_PASS_14, MS_PASS_13, MS_PASS_12, MS_PASS_11,      \
                   MS_PASS_10, MS_PASS_9, MS_PASS_8, MS_PASS_7, MS_PASS_6, MS_PASS_5, MS_PASS_4, MS_PASS_3,  \
                   MS_PASS_2, MS_PASS_1, )                                                                   \
    (c, r, __VA_ARGS__)

#endif
