/* show.c - takes a stack in one of several situations, prints its frames, and then calls stop_here for a
 * debugger to look.
 *
 * usage: show plain|signal|alternate|thread. Run by gdb.sh. */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/stack/show.h"
#include "tests/stack/snap.h"

static void take(void *arg)
{
    (void)arg;
    show_stack();
    __asm__ volatile("" ::: "memory");
}

static void handler(int signal)
{
    (void)signal;
    take(NULL);
}

static void in_signal(void *arg)
{
    (void)arg;
    raise(SIGUSR1);
}

static void *in_thread(void *arg)
{
    frames_call(25, FRAMES_SHAPES, take, arg);
    return NULL;
}

int main(int argc, char **argv)
{
    static char memory[256 << 10];
    const char *how = argc > 1 ? argv[1] : "plain";
    struct sigaction action = {.sa_handler = handler,
                               .sa_flags = strcmp(how, "alternate") == 0 ? SA_ONSTACK : 0};
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    pthread_t thread;
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    if (strcmp(how, "thread") == 0) {
        pthread_create(&thread, NULL, in_thread, NULL);
        pthread_join(thread, NULL);
    } else {
        frames_call(25, FRAMES_SHAPES, strcmp(how, "plain") == 0 ? take : in_signal, NULL);
    }
    return 0;
}
