/* planted.c - programs with one fault each, and the same without it: planted NAME [clean].
 *
 * Each is a function of its own in planted_*.c, by whose name the finding has to say where it is
 * (tests/findings/findings.py). Nothing is said but a failure of a call that must not fail, and that ends the
 * program with 3. */
#include "planted.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

volatile int many = MANY;

void must(int status, const char *what)
{
    if (status) {
        printf("%s: %d\n", what, status);
        exit(3);
    }
}

void rest_a_moment(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static const struct scene {
    const char *name;
    void (*play)(bool clean);
} scenes[] = {
#define PLANTED(name) {#name, name},
#include "planted.def"
#undef PLANTED
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof scenes / sizeof scenes[0]; i++) {
        if (!strcmp(scenes[i].name, argv[1])) {
            scenes[i].play(argc > 2 && !strcmp(argv[2], "clean"));
            return 0;
        }
    }
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++)
        puts(scenes[i].name);
    return argc > 1 ? 2 : 0;
}
