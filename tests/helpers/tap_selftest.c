/*
 * A program that reports known facts, right and wrong, through tap.h. harness.sh runs it and looks at what
 * came out; it is not a test by itself.
 */
#include <unistd.h>

#include "tests/tap.h"

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "hang") == 0)
        for (;;)
            pause();
    if (argc > 1 && strcmp(argv[1], "skip") == 0)
        skip_all("nothing here");
    plan(argc > 1 && strcmp(argv[1], "short") == 0 ? 9 : 8);
    ok(true, "a fact # with a hash");
    is_u64(7, 7, "equal numbers");
    is_u64(7, 8, "unequal numbers");
    is_str("a", "a", "equal strings");
    is_str(NULL, "a", "a string and none");
    is_int(-1, -1, "equal codes");
    is_ptr(argv, argv, "equal pointers");
    skip(1, "no such thing here");
    return done();
}
