/* inert.c - says how many threads, open files and bytes of memory the process has; it uses no GPU. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int entries(const char *path)
{
    DIR *directory = opendir(path);
    int count = -2; /* . and .. */

    if (!directory)
        return -1;
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

int main(int argc, char **argv)
{
    printf("threads %d\n", entries("/proc/self/task"));
    printf("open files %d\n", entries("/proc/self/fd"));
    printf("preload %s\n", argc > 1 ? getenv("LD_PRELOAD") ? "set" : "unset" : "");
    (void)argv;
    return 0;
}
