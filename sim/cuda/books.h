/*
 * The driver's own ledger: whose each byte of a device is that counts as used, by category, apart from what
 * cuMemGetInfo says. And what others hold of the devices: so much as MEMSIM_OTHERS says, and, where processes
 * name the same directory (MEMSIM_LEDGER), what each of them takes.
 */
#ifndef SIM_CUDA_BOOKS_H
#define SIM_CUDA_BOOKS_H

#include "sim/cuda/sim.h"

/** Bytes of one device. All but `others` are this process's, and add up to what of the capacity is used. */
struct sim_books {
    size_t asked; /* what live allocations were asked for with, in stream order until the call that frees */
    size_t contexts; /* taken for contexts */
    size_t modules;  /* taken for modules as they were loaded */
    size_t lazy;     /* taken as they were first used, by a context or for a variable */
    size_t graphs;   /* kept for graphs, in use by one or not */
    size_t rounding; /* what granules, and padding, add to what was asked for */
    size_t arrays;   /* what granules add in which arrays lie, and nothing that has an address */
    size_t pools;    /* in units of pools, and in no live allocation */
    size_t leaving;  /* freed, and not the device's yet */
    size_t others;   /* not this process's */
};

/** The bytes that others hold of a device; the driver refuses what would not fit beside it. */
size_t sim_books_others(int ordinal);
/** This process has so much of the device in use from now on. */
void sim_books_use(int ordinal, size_t used_bytes);
/** True if books are asked for. */
bool sim_books_kept(void);
/** A program asks how much is free: the books of that moment, to be written once no lock is held. The memory
 * lock is held. */
void sim_books_look(const struct sim_device *device, struct sim_books *books_p);
/** One line in the process's file of the directory: what other copies of the library have in this process
 * is added to the categories, and taken from what others have. No lock held. */
void sim_books_write(const struct sim_device *device, struct sim_books *books);

/* Parts of it, in the rooms that know them; the memory lock is held. heap.c, poolunit.c, vmm.c */
void sim_heap_count(const struct sim_device *device, struct sim_books *books);
void sim_unit_count(const struct sim_device *device, struct sim_books *books);
void sim_phys_count(const struct sim_device *device, struct sim_books *books);

/** Which vendor's devices they are: of the driver (usage.c), or of a library on its rooms (front.c). */
const char *sim_books_world(void);

#endif
