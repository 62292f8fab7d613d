/* copies_deps.c - a library that does nothing but bring the runtime which it is linked with. */
int copies_deps(void);
int copies_deps(void)
{
    return 0;
}
