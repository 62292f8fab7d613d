/* nothing.c - calls functions with nothing in their arguments, before their library is ready and after;
 * prints what each answered, for nothing.py. Each call is in a child of its own, which some of them end.
 *
 * Usage: nothing LIBRARY READY <NAMES     READY: a function that makes the library ready, called with 0 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOM = 1 << 16, NAME = 200 };

/* As many as any has, those on the stack too. */
typedef int (*func_t)(void *, long, long, long, long, long, long, long, long, long, long, long, long, long,
                      long, long);

static int call(func_t function, void *first)
{
    return function(first, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

/* Driver contexts are made current by calls of their own. */
static void make_ready(void *library, const char *name, void *room)
{
    func_t retain = (func_t)dlsym(library, "cuDevicePrimaryCtxRetain");
    func_t set = (func_t)dlsym(library, "cuCtxSetCurrent");

    call((func_t)dlsym(library, name), NULL);
    if (!strcmp(name, "cuInit") && call(retain, room) == 0)
        call(set, *(void **)room);
    memset(room, 0, ROOM);
}

static void try(const char *path, const char *ready, const char *name, void *room)
{
    int status, said[6] = {0}, count = 0, pipes[2];
    pid_t child;

    if (pipe(pipes) != 0 || (child = fork()) < 0)
        _exit(1);
    if (child == 0) {
        void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
        func_t seen = (func_t)dlsym(RTLD_DEFAULT, name), own = (func_t)dlsym(library, name);
        if (!seen || !own)
            _exit(77);
        int answers[2] = {call(seen, NULL), call(own, NULL)};
        if (write(pipes[1], answers, sizeof answers) < 0)
            _exit(1);
        make_ready(library, ready, room);
        for (int i = 0; i < 4; i++) {
            answers[0] = call(i & 1 ? own : seen, i & 2 ? room : NULL);
            memset(room, 0, ROOM);
            if (write(pipes[1], answers, sizeof answers[0]) < 0)
                _exit(1);
        }
        _exit(0);
    }
    close(pipes[1]);
    for (ssize_t got; (got = read(pipes[0], said + count, sizeof said - (size_t)count * sizeof *said)) > 0;)
        count += (int)((size_t)got / sizeof *said);
    close(pipes[0]);
    while (waitpid(child, &status, 0) < 0)
        ;
    printf("%s", name);
    for (int i = 0; i < count; i++)
        printf(" %d", said[i]);
    printf(" %s %d\n", WIFSIGNALED(status) ? "signal" : "exit",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    char name[NAME];
    void *room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (argc != 3 || room == MAP_FAILED)
        return 2;
    while (fgets(name, sizeof name, stdin)) {
        name[strcspn(name, "\n")] = '\0';
        try(argv[1], argv[2], name, room);
    }
    return 0;
}
