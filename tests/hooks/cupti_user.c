/* cupti_user.c - a library that is linked with CUPTI, as libraries of frameworks are, and listens when it is
 * told to. */
int cuptiSubscribe(void **subscriber, void *callback, void *userdata);
int cuptiActivityEnable(int kind);
int listen_now(void);
int record_now(void);

int listen_now(void)
{
    void *subscriber;

    return cuptiSubscribe(&subscriber, (void *)listen_now, (void *)0);
}

int record_now(void)
{
    return cuptiActivityEnable(3);
}
