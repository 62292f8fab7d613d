/*
 * Lists of exports that several versions of a library share: SIM_WITHIN(first, last, row) is the row in a
 * build whose version is one of those, and nothing in the others. The build says its version: SIM_CUDART,
 * SIM_CUBLAS or SIM_HIP.
 */
#ifndef SIM_VERSIONS_H
#define SIM_VERSIONS_H

#if defined SIM_CUDART
#define SIM_VERSION SIM_CUDART
#elif defined SIM_CUBLAS
#define SIM_VERSION SIM_CUBLAS
#else
#define SIM_VERSION SIM_HIP
#endif

#define SIM_WITHIN(first, last, ...) SIM_FROM_##first(SIM_TO_##last(__VA_ARGS__))

/* The first version of each library, and the last, bound nothing. */
#define SIM_FROM_5(...)  __VA_ARGS__
#define SIM_FROM_12(...) __VA_ARGS__
#define SIM_TO_7(...)    __VA_ARGS__
#define SIM_TO_13(...)   __VA_ARGS__

#if SIM_VERSION >= 6
#define SIM_FROM_6(...) __VA_ARGS__
#define SIM_TO_5(...)
#else
#define SIM_FROM_6(...)
#define SIM_TO_5(...) __VA_ARGS__
#endif
#if SIM_VERSION >= 7
#define SIM_FROM_7(...) __VA_ARGS__
#else
#define SIM_FROM_7(...)
#endif
#if SIM_VERSION >= 13
#define SIM_FROM_13(...) __VA_ARGS__
#define SIM_TO_12(...)
#else
#define SIM_FROM_13(...)
#define SIM_TO_12(...) __VA_ARGS__
#endif

#endif
