/* cupti.c - a library by the name of CUPTI's, which does nothing. */
int cupti_stands_here(void);

int cupti_stands_here(void)
{
    return 1;
}
