/* cupti.c - a library by the name of CUPTI's, with two of its functions, which count their calls and hear of
 * nothing. */
int cuptiSubscribe(void **subscriber, void *callback, void *userdata);
int cuptiActivityEnable(int kind);
int cupti_calls(void);

static int calls;

int cuptiSubscribe(void **subscriber, void *callback, void *userdata)
{
    (void)callback, (void)userdata;
    if (!subscriber)
        return 1;
    *subscriber = &calls;
    return ++calls, 0;
}

int cuptiActivityEnable(int kind)
{
    return kind < 0 ? 1 : (++calls, 0);
}

int cupti_calls(void)
{
    return calls;
}
