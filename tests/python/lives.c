/* lives.c - a program that initialises an interpreter and finalises it, several times: lives LIBPYTHON
 * [PROBE].
 *
 * Without a probe: whether the interpreter bears that by itself. Else with the probe preloaded. Each life
 * runs the same program but for a function's name, so that objects may come to lie where others were and have
 * their numbers; each must read its own stack. Prints the lives as the probe counts them, and fails where a
 * stack is another's, or where a life is not another than before. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { LIVES = 6, SOURCE_BYTES = 4096 };

static const char source_form[] =
    "import ctypes\n"
    "probe = ctypes.PyDLL('%s')\n"
    "class Code(ctypes.Structure):\n"
    "    _fields_ = [('file', ctypes.c_char_p), ('name', ctypes.c_char_p), ('lines', ctypes.c_void_p),\n"
    "                ('bytes', ctypes.c_uint), ('first', ctypes.c_uint)]\n"
    "def name(row):\n"
    "    code = Code()\n"
    "    assert probe.probe_code(row, ctypes.byref(code)) == 0\n"
    "    return code.name.decode()\n"
    "def take():\n"
    "    state, count, frames = ctypes.c_int(), ctypes.c_uint(), (ctypes.c_uint * 512)()\n"
    "    probe.probe_take(ctypes.byref(state), frames, 128, ctypes.byref(count), None)\n"
    "    return [name(frames[4 * i]) for i in range(count.value)]\n"
    "def life_%d():\n"
    "    return take()\n"
    "for _ in range(3):\n"
    "    told = life_%d()\n"
    "    assert told == ['take', 'life_%d', '<module>'], told\n";

/* 0, and a line of standard error, where it is not there. */
static void *find(void *library, const char *name)
{
    void *symbol = dlsym(library, name);
    if (!symbol)
        fprintf(stderr, "lives: there is no %s\n", name);
    return symbol;
}

int main(int argc, char **argv)
{
    void *python = argc == 2 || argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (!python) {
        fprintf(stderr, "lives: %s\n", argc == 2 || argc == 3 ? dlerror() : "usage: lives LIBPYTHON [PROBE]");
        return 2;
    }
    void (*initialize)(int) = (void (*)(int))find(python, "Py_InitializeEx");
    int (*run)(const char *, void *) = (int (*)(const char *, void *))find(python, "PyRun_SimpleStringFlags");
    int (*finalize)(void) = (int (*)(void))find(python, "Py_FinalizeEx");
    if (!initialize || !run || !finalize)
        return 2;
    for (unsigned i = 0; argc == 2 && i < LIVES; i++) {
        initialize(0);
        if (run("import ctypes", NULL) != 0 || finalize() != 0)
            return 1;
    }
    if (argc == 2)
        return 0;
    void (*start)(int) = (void (*)(int))find(RTLD_DEFAULT, "probe_start");
    unsigned long long (*life)(void) = (unsigned long long (*)(void))find(RTLD_DEFAULT, "probe_life");
    if (!start || !life)
        return 2;
    start(1);
    for (unsigned long long i = 0, last = 0; i < LIVES; i++) {
        char source[SOURCE_BYTES];
        snprintf(source, sizeof source, source_form, argv[2], (int)i, (int)i, (int)i);
        initialize(0);
        if (run(source, NULL) != 0)
            return 1;
        unsigned long long now = life();
        printf("%llu ", now);
        if (finalize() != 0 || life() != 0 || (now && now == last))
            return 1;
        last = now;
    }
    printf("\n");
    return 0;
}
