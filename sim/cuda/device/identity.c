/*
 * Who a device is: see identity.h. The unique ids spell "memsim" and end with the device's number from 1.
 */
#include "sim/cuda/device/identity.h"

#include <stdio.h>
#include <string.h>

#include "sim/cuda/sim.h"

enum { FIRST_BUS = 0x18 };

void sim_uuid(int ordinal, CUuuid *uuid_p)
{
    static const char fixed[] = {0x6d,       0x65, 0x6d, 0x73, 0x69, 0x6d, 0x40, 0x00,
                                 (char)0x80, 0,    0,    0,    0,    0,    0};

    memcpy(uuid_p->bytes, fixed, sizeof fixed);
    uuid_p->bytes[15] = (char)(ordinal + 1);
}

void sim_uuid_text(int ordinal, char text[SIM_UUID_TEXT])
{
    CUuuid uuid;
    char *end = text + snprintf(text, SIM_UUID_TEXT, "GPU");

    sim_uuid(ordinal, &uuid);
    for (int i = 0; i < 16; i++)
        end += snprintf(end, (size_t)(text + SIM_UUID_TEXT - end), "%s%02x",
                        i == 0 || (i >= 4 && i <= 10 && !(i & 1)) ? "-" : "", (unsigned char)uuid.bytes[i]);
}

int sim_pci_bus(int ordinal)
{
    return FIRST_BUS + ordinal;
}

bool sim_pci_parse(const char *id, int *ordinal_p)
{
    unsigned domain = 0, bus, slot, function = 0;

    if (sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
        domain = 0;
        if (sscanf(id, "%x:%x.%x", &bus, &slot, &function) < 2)
            return false;
    }
    bool known = !domain && !slot && !function && bus >= FIRST_BUS && bus - FIRST_BUS < sim_config.devices;
    *ordinal_p = known ? (int)(bus - FIRST_BUS) : -1;
    return true;
}
