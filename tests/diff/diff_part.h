/* diff_part.h - the part of diff_user.c whose file is renamed. */
__attribute__((noinline)) static void in_part(void)
{
    take(6 * MIB);
    take(4 * MIB);
}
