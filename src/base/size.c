/* size.c - sizes as people write them; see size.h. */
#include <ctype.h>
#include <stdio.h>
#include <strings.h>

#include "base/size.h"

/* So many decimals make a difference of less than a byte in a tebibyte; the rest is read and dropped. */
enum { DECIMALS = 13 };

static bool read_digits(const char **text_p, uint64_t *number_p)
{
    uint64_t number = 0;
    const char *p = *text_p;

    for (; isdigit((unsigned char)*p); p++) {
        if (__builtin_mul_overflow(number, 10u, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*p - '0'), &number))
            return false;
    }
    *number_p = number;
    *text_p = p;
    return true;
}

/* Digits behind a point, as a number of 10 to the power of -DECIMALS. */
static uint64_t read_fraction(const char **text_p)
{
    uint64_t fraction = 0;
    int digits = 0;

    for (; isdigit((unsigned char)**text_p); ++*text_p, digits++) {
        if (digits < DECIMALS)
            fraction = fraction * 10 + (uint64_t)(**text_p - '0');
    }
    for (; digits < DECIMALS; digits++)
        fraction *= 10;
    return fraction;
}

/* The power of two that a unit stands for, -1 for none. */
static int read_unit(const char **text_p)
{
    static const char letters[] = "KMGT";
    int shift = -1;

    for (int i = 0; letters[i]; i++) {
        if (toupper((unsigned char)**text_p) == letters[i])
            shift = 10 * (i + 1);
    }
    if (shift < 0)
        return -1;
    ++*text_p;
    if (strncasecmp(*text_p, "iB", 2) == 0)
        *text_p += 2;
    else if (toupper((unsigned char)**text_p) == 'B')
        ++*text_p;
    return shift;
}

bool ms_size_read(const char **text_p, uint64_t *bytes_p)
{
    const char *p = *text_p;
    uint64_t whole, fraction = 0, one = 1;
    bool is_fraction = false;

    if (!isdigit((unsigned char)*p) || !read_digits(&p, &whole))
        return false;
    if (*p == '.' && isdigit((unsigned char)p[1])) {
        p++;
        fraction = read_fraction(&p);
        is_fraction = true;
    }
    int shift = read_unit(&p);
    if ((shift < 0 && is_fraction) || (shift > 0 && whole > UINT64_MAX >> shift))
        return false;
    for (int i = 0; i < DECIMALS; i++)
        one *= 10;
    if (shift > 0)
        whole = (whole << shift) + (uint64_t)(((__uint128_t)fraction << shift) / one);
    *bytes_p = whole;
    *text_p = p;
    return true;
}

bool ms_size_lacks_unit(const char *text)
{
    uint64_t bytes = 0;
    const char *end = text;

    for (const char *c = text; *c; c++)
        if (*c < '0' || *c > '9')
            return false;
    return ms_size_read(&end, &bytes) && bytes > 0 && bytes < 1 << 20;
}

void ms_size_write(uint64_t size, char *text, size_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)size / 1024;
    unsigned unit = 0;

    if (size < 1024) {
        snprintf(text, bytes, "%u B", (unsigned)size);
        return;
    }
    /* 1023.95 would be printed as 1024.0 of the smaller unit. */
    for (; value >= 1023.95 && unit < 5; unit++)
        value /= 1024;
    /* Figures of gibibytes that differ by less than a tenth are many megabytes apart. */
    snprintf(text, bytes, "%.*f %s", unit >= 2 && value < 999.995 ? 2 : 1, value, units[unit]);
}
