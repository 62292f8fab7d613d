/* check.h - whether the ledger's sums add up, for tests.
 *
 * Floor 2. */
#ifndef MS_LEDGER_CHECK_H
#define MS_LEDGER_CHECK_H

/** Compares live blocks with the totals of devices, kinds and sites, and each device's peak with what its
 * sites held then.
 *
 * Returns how many equations do not hold (each is logged as an error), or -1 without memory. Stops the world
 * meanwhile. */
int ms_ledger_check(void);

#endif
