/*
 * Which card the devices are: an H200 that the simulator made up (attributes.def), or one that was read
 * (cards.def) and that MEMSIM_CARD names. Written once, before the first call is answered; no lock, allocates
 * nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/sim.h"

#define WITH_PEERS 1 /* devices reach each other's memory */
#define ON_WSL     2 /* recorded under Windows' Linux */

#define DEFAULT_KEY  "h200"
#define DEFAULT_NAME "Simulated NVIDIA H200"

/* A card, or, without a key, what the card before it says of one attribute. */
struct row {
    const char *key, *name;
    size_t memory_bytes;
    unsigned traits;
    int attribute, value;
    unsigned told_mib;
};

static const struct row rows[] = {
#define CARD(key, name, bytes, traits) {key, name, bytes, traits, 0, 0, 0},
#define SAYS(attribute, value)         {NULL, NULL, 0, 0, CU_DEVICE_ATTRIBUTE_##attribute, value, 0},
#define TELLS(mib)                     {NULL, NULL, 0, 0, 0, 0, mib},
#include "sim/cuda/cards.def"
#undef CARD
#undef SAYS
#undef TELLS
};

static int attributes[CU_DEVICE_ATTRIBUTE_MAX] = {
#define X(name, value) [CU_DEVICE_ATTRIBUTE_##name] = value,
#include "sim/cuda/attributes.def"
#undef X
};

static size_t reserved_bytes; /* of what the management library tells, and the driver does not */
static const char *name = DEFAULT_NAME;
static unsigned traits = WITH_PEERS;

static const struct row *find(const char *key)
{
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].key && !strcmp(rows[i].key, key))
            return &rows[i];
    return NULL;
}

static void complain(const char *key)
{
    char allowed[200] = DEFAULT_KEY;

    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].key)
            strcat(strcat(allowed, ", "), rows[i].key);
    sim_config_complain("MEMSIM_CARD", key, allowed);
}

/* The device's memory is the host's: any card can be such a one. */
static void read_integrated(void)
{
    const char *text = secure_getenv("MEMSIM_INTEGRATED");

    if (!text || !*text || !strcmp(text, "0"))
        return;
    if (strcmp(text, "1") != 0)
        sim_config_complain("MEMSIM_INTEGRATED", text, "0 or 1");
    else
        attributes[CU_DEVICE_ATTRIBUTE_INTEGRATED] = 1;
}

static void read_card(void)
{
    const char *key = secure_getenv("MEMSIM_CARD");

    if (!key || !*key || !strcmp(key, DEFAULT_KEY))
        return;
    const struct row *card = find(key);
    if (!card) {
        complain(key);
        return;
    }
    name = card->name;
    traits = card->traits;
    if (!sim_config.memory_asked)
        sim_config.memory_bytes = card->memory_bytes;
    for (const struct row *says = card + 1; says < rows + sizeof rows / sizeof rows[0] && !says->key;
         says++) {
        if (says->told_mib)
            reserved_bytes = ((size_t)says->told_mib << 20) - card->memory_bytes;
        else
            attributes[says->attribute] = says->value;
    }
}

void sim_card_read(void)
{
    read_card();
    read_integrated();
}

const char *sim_card_name(void)
{
    return name;
}

size_t sim_card_reserved(void)
{
    return reserved_bytes;
}

int sim_card_attribute(CUdevice_attribute attribute)
{
    return attributes[attribute];
}

bool sim_card_peers(void)
{
    return traits & WITH_PEERS;
}

bool sim_card_wsl(void)
{
    return traits & ON_WSL;
}
