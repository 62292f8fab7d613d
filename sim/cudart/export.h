/*
 * How a function of the simulated runtime is visible: exported by the shared libraries. In the static ones
 * (SIM_STATIC) it is hidden, as the vendor's is: it belongs to whatever it was linked into, and never takes
 * the place of another copy in the process.
 */
#ifndef SIM_CUDART_EXPORT_H
#define SIM_CUDART_EXPORT_H

#ifdef SIM_STATIC
#define SIM_API __attribute__((visibility("hidden")))
#else
#define SIM_API __attribute__((visibility("default")))
#endif

#endif
