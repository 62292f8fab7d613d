/* The command's table of verbs, without the command. */
int ms_command_main(int argc, char **argv);
#define main ms_command_main
#include "cli/main.c"
