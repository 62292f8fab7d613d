/* test_base64.c - bytes as base64 and back: the examples of RFC 4648, all bytes, and where a text ends. */
#include "base/base64.h"

#include <string.h>

#include "tests/tap.h"

static void one(const char *bytes, const char *text)
{
    char out[64] = "";
    unsigned char back[64];
    size_t count = strlen(bytes);

    ms_base64_encode(out, (const unsigned char *)bytes, count);
    ok(ms_base64_chars(count) == strlen(text) && strcmp(out, text) == 0, "%s is %s", bytes, out);
    ok(ms_base64_decode(back, text) == count && memcmp(back, bytes, count) == 0, "and back");
}

int main(void)
{
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    unsigned char all[256], back[258];
    char text[345] = "";

    plan(0);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        one(pairs[i][0], pairs[i][1]);
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (unsigned char)i;
    ms_base64_encode(text, all, sizeof all);
    ok(strlen(text) == 344 && ms_base64_decode(back, text) == 256 && memcmp(all, back, 256) == 0,
       "every byte comes back");
    ok(ms_base64_decode(back, "Zm9v\nYmFy") == 3 && ms_base64_decode(back, "*") == 0,
       "a text ends at what is no digit");
    return done();
}
