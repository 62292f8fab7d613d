/* Ends with memory that its library (late.c) still holds, and gives back afterwards. */
int late_take(void);

int main(void)
{
    return late_take();
}
