/* metrics.h - memshim metrics: figures of the user's processes on this machine, and how they are served.
 *
 * Floor 5. metrics.c takes them out of ledgers, metrics_http.c judges requests, metrics_serve.c has the
 * connections, cmd_metrics.c is the verb. */
#ifndef MS_CLI_LIVE_METRICS_H
#define MS_CLI_LIVE_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "export/writers/metrics.h"

/** Of all processes of this user's that run; NULL without memory. */
struct ms_metrics *ms_metrics_collect(void);

/** The most bytes of a request's head: a longer one is refused. */
enum { MS_HTTP_HEAD_BYTES_MAX = 8192 };

/** The status that a request has earned; 0 while its head is not whole. *open_p: OpenMetrics was asked for.
 */
int ms_http_check(const char *head, size_t length, bool *open_p);

struct ms_listen {
    struct sockaddr_storage address;
    socklen_t bytes;
};
/** PORT, which is 127.0.0.1's, ADDRESS:PORT or [ADDRESS]:PORT. 0, or -1 after an error line. */
int ms_listen_parse(const char *text, struct ms_listen *listen_p);
/** Serve until a signal ends the command. Returns an exit status after an error line. */
int ms_metrics_serve(const struct ms_listen *where);

#endif
