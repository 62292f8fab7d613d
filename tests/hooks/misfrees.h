/* misfrees.h - the scenes of misfrees.c that need declarations of their own. */
#ifndef MS_TESTS_HOOKS_MISFREES_H
#define MS_TESTS_HOOKS_MISFREES_H

void say(const char *what, int status);
void hip_scene(void);

#endif
