/*
 * Who a device is, as the driver and the management library both tell it. Constants of the ordinal; no lock,
 * allocates nothing.
 */
#ifndef SIM_CUDA_DEVICE_IDENTITY_H
#define SIM_CUDA_DEVICE_IDENTITY_H

#include <stdbool.h>

#include "vendor/abi/cuda_driver.h"

enum { SIM_UUID_TEXT = 41 };

void sim_uuid(int ordinal, CUuuid *uuid_p);
/** "GPU-" and the bytes in groups, as the management library has it. */
void sim_uuid_text(int ordinal, char text[SIM_UUID_TEXT]);
/** The number of the device's bus; domain, slot and function are 0. */
int sim_pci_bus(int ordinal);
/** Read "[domain:]bus:slot[.function]"; false if it is none. The ordinal is -1 if there is no such device. */
bool sim_pci_parse(const char *id, int *ordinal_p);

#endif
