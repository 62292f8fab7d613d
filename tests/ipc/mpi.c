/* mpi.c - a library that is called as MPI's is, and does nothing. */
int ms_test_mpi(void);
int ms_test_mpi(void)
{
    return 0;
}
