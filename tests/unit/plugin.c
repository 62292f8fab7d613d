/* plugin.c - a library whose constructor calls the program that loads it; built twice, under two names. */
extern void plugin_constructed(const char *name) __attribute__((weak));
int plugin_function(void (*callback)(void));
const char *plugin_name(void);

__attribute__((constructor)) static void construct(void)
{
    if (plugin_constructed)
        plugin_constructed(PLUGIN_NAME);
}

int plugin_function(void (*callback)(void))
{
    callback();
    return 1; /* so that the call above is not the last thing: its return address lies in here */
}

const char *plugin_name(void)
{
    return PLUGIN_NAME;
}
