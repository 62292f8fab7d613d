/* resolver.c - names for addresses, in place of the resolver that opens the files a report names.
 *
 * Used by the fuzzers alone. All that it says depends on the path's length and the address: also what no file
 * would say, such as names that are no UTF-8. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "report/symbols/resolver.h"

static int resolver;

enum ms_resolver_status ms_resolver_open(const char *path, const char *build_id,
                                         const struct ms_symbol_places *places,
                                         struct ms_resolver **resolver_p)
{
    size_t length = strlen(path) + strlen(build_id) + (places->sysroot ? 1 : 0);

    *resolver_p = (struct ms_resolver *)(void *)&resolver;
    return length % 8 < 5 ? MS_RESOLVER_OK : (enum ms_resolver_status)(length % 8 - 4);
}

void ms_resolver_close(struct ms_resolver *opened)
{
    if ((void *)opened != &resolver)
        abort();
}

/* None: nothing that is made up here is kept. */
void ms_resolver_state(struct ms_resolver *opened, char *state, size_t bytes)
{
    (void)opened;
    if (bytes)
        *state = '\0';
}

size_t ms_resolver_lookup(struct ms_resolver *opened, uint64_t pc, struct ms_location *locations, size_t max)
{
    static const char *const names[] = {"f", "std::vector<int>::push_back(int&&)", "\xff\xfe", NULL, ""};
    size_t count = pc % 16 == 15 ? max : pc % 4;

    (void)opened;
    for (size_t i = 0; i < count; i++)
        locations[i] = (struct ms_location){names[(pc >> 4) % MS_ARRAY_LEN(names)],
                                            names[(pc >> 8) % MS_ARRAY_LEN(names)], (int)(pc >> 12) % 1000,
                                            i + 1 < count};
    return count;
}
