/* metrics_serve.c - the connections of memshim metrics --listen; see metrics.h.
 *
 * Floor 5. One thread has the connections and waits for no client: each has a bounded number of bytes, until
 * its deadline to say what it wants, and as long again to take the answer. When all places are taken, whoever
 * has been here longest goes. Ledgers are read by another thread, one at a time, since on a busy machine that
 * takes long: meanwhile others are served, nobody's time runs out for it, and a scraper, which gives up after
 * some seconds, is told what was there at the look before. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/live/ledgers.h"
#include "cli/live/metrics.h"

/* A scrape over the loopback takes milliseconds; figures a second old are as good, and clients that ask all
 * the time do not make this process busy: figures that took long to collect are good for three times as long.
 * Scrapers are seldom told to give up in less than a second. tests/ledger/metrics.py has more clients than
 * places, and a look that does not end. */
enum { CONNECTIONS_MAX = 16, DEADLINE_MS = 5000, FRESH_MS = 1000, FRESH_TIMES = 3, PATIENCE_MS = 500 };

enum stage { FREE, READING, WAITING, WRITING, DRAINING };

struct connection {
    enum stage stage;
    int fd;
    int64_t since_ms;    /* here since then */
    int64_t deadline_ms; /* while it waits: until when it does so for newer figures than there are */
    bool open;           /* OpenMetrics was asked for */
    char head[MS_HTTP_HEAD_BYTES_MAX];
    size_t length;
    char *answer; /* owned */
    size_t bytes, sent;
};

struct server {
    int fd;
    struct connection connections[CONNECTIONS_MAX];
    struct ms_metrics *metrics;
    int64_t stale_ms; /* when they are */
    bool looking;     /* the other thread is at it */
    pthread_t looker;
    int64_t look_ms;         /* since then */
    int looked[2];           /* a pipe: a byte when it has ended */
    struct ms_metrics *next; /* what it found */
};

static int64_t metrics_serve_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void metrics_serve_drop(struct connection *connection)
{
    close(connection->fd);
    free(connection->answer);
    connection->answer = NULL;
    connection->stage = FREE;
}

static const char *reason_of(int status)
{
    return status == 200   ? "OK"
           : status == 404 ? "Not Found"
           : status == 405 ? "Method Not Allowed"
           : status == 421 ? "Misdirected Request"
           : status == 431 ? "Request Header Fields Too Large"
           : status == 503 ? "Service Unavailable"
           : status == 505 ? "HTTP Version Not Supported"
                           : "Bad Request";
}

static void *metrics_serve_look(void *arg)
{
    struct server *server = arg;

    server->next = ms_metrics_collect();
    while (write(server->looked[1], "", 1) < 0 && errno == EINTR)
        ;
    return NULL;
}

static void begin_look(struct server *server)
{
    server->look_ms = metrics_serve_now_ms();
    server->looking = pthread_create(&server->looker, NULL, metrics_serve_look, server) == 0;
}

static void end_look(struct server *server)
{
    int64_t good_ms = FRESH_TIMES * (metrics_serve_now_ms() - server->look_ms);
    char byte;

    if (read(server->looked[0], &byte, 1) != 1)
        return;
    pthread_join(server->looker, NULL);
    server->looking = false;
    if (!server->next)
        return;
    ms_metrics_close(server->metrics);
    server->metrics = server->next;
    server->stale_ms = metrics_serve_now_ms() + (good_ms > FRESH_MS ? good_ms : FRESH_MS);
}

static char *body_of(const struct server *server, int *status_p, bool open, size_t *bytes_p)
{
    char *body = NULL;
    FILE *out = open_memstream(&body, bytes_p);

    if (!out)
        return NULL;
    if (*status_p == 200 && (!server->metrics || ms_metrics_write(server->metrics, out, open) < 0))
        *status_p = 503;
    if (*status_p != 200)
        fprintf(out, "%s; GET /metrics by this machine's name or address\n", reason_of(*status_p));
    if (fclose(out) == 0)
        return body;
    free(body);
    return NULL;
}

static int make_answer(const struct server *server, struct connection *connection, int status)
{
    size_t bytes;
    char *body = body_of(server, &status, connection->open, &bytes);
    FILE *out = body ? open_memstream(&connection->answer, &connection->bytes) : NULL;

    if (out) {
        fprintf(out, "HTTP/1.1 %d %s\r\nContent-Type: %s; charset=utf-8\r\nContent-Length: %zu\r\n", status,
                reason_of(status),
                status != 200      ? "text/plain"
                : connection->open ? "application/openmetrics-text; version=1.0.0"
                                   : "text/plain; version=0.0.4",
                bytes);
        fprintf(out,
                "%sX-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
                status == 405 ? "Allow: GET\r\n" : "");
        fwrite(body, 1, bytes, out);
    }
    free(body);
    return out && fclose(out) == 0 ? 0 : -1;
}

static void metrics_serve_answer(const struct server *server, struct connection *connection, int status)
{
    connection->sent = 0;
    connection->stage = WRITING;
    connection->deadline_ms = metrics_serve_now_ms() + DEADLINE_MS;
    if (make_answer(server, connection, status) < 0)
        metrics_serve_drop(connection);
}

/* Figures that are old are looked for anew; whoever waits gets the new ones, or those that there are. */
static void answer_waiting(struct server *server)
{
    int64_t now = metrics_serve_now_ms();

    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        struct connection *connection = &server->connections[i];

        if (connection->stage == WAITING &&
            (!server->looking || (server->metrics && connection->deadline_ms <= now)))
            metrics_serve_answer(server, connection, 200);
    }
}

static void wait_for_figures(struct server *server, struct connection *connection)
{
    connection->stage = WAITING;
    connection->deadline_ms = metrics_serve_now_ms() + PATIENCE_MS;
    if (!server->looking && (!server->metrics || metrics_serve_now_ms() >= server->stale_ms))
        begin_look(server);
}

static void read_head(struct server *server, struct connection *connection)
{
    ssize_t got = recv(connection->fd, connection->head + connection->length,
                       sizeof(connection->head) - connection->length, 0);
    int status;

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        metrics_serve_drop(connection);
        return;
    }
    connection->length += (size_t)got;
    status = ms_http_check(connection->head, connection->length, &connection->open);
    if (status == 200)
        wait_for_figures(server, connection);
    else if (status)
        metrics_serve_answer(server, connection, status);
}

/* Sends what is left of the answer. Whatever the client still says after that is read and forgotten: if the
 * connection were closed over it, the answer would be lost. */
static void write_answer(struct connection *connection)
{
    ssize_t sent = send(connection->fd, connection->answer + connection->sent,
                        connection->bytes - connection->sent, MSG_NOSIGNAL);

    if (sent < 0 && errno != EAGAIN && errno != EINTR)
        metrics_serve_drop(connection);
    if (sent <= 0)
        return;
    connection->sent += (size_t)sent;
    if (connection->sent < connection->bytes)
        return;
    shutdown(connection->fd, SHUT_WR);
    connection->stage = DRAINING;
}

static void drain(struct connection *connection)
{
    char forgotten[4096];
    ssize_t got = recv(connection->fd, forgotten, sizeof(forgotten), 0);

    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        metrics_serve_drop(connection);
}

static void metrics_serve_go_on(struct server *server, struct connection *connection)
{
    if (connection->stage == READING)
        read_head(server, connection);
    else if (connection->stage == WRITING)
        write_answer(connection);
    else if (connection->stage == DRAINING)
        drain(connection);
    else
        metrics_serve_drop(connection); /* who waits has nothing to say: it has gone */
}

static struct connection *metrics_serve_place(struct server *server)
{
    struct connection *oldest = &server->connections[0];

    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        if (server->connections[i].stage == FREE)
            return &server->connections[i];
        if (server->connections[i].since_ms < oldest->since_ms)
            oldest = &server->connections[i];
    }
    metrics_serve_drop(oldest);
    return oldest;
}

static void take_client(struct server *server)
{
    int fd = accept4(server->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct connection *connection;

    if (fd < 0)
        return;
    connection = metrics_serve_place(server);
    connection->fd = fd;
    connection->stage = READING;
    connection->length = 0;
    connection->open = false;
    connection->since_ms = metrics_serve_now_ms();
    connection->deadline_ms = connection->since_ms + DEADLINE_MS;
}

/* Drops who is late; how long the others may take at most, -1 without any. Until there are figures at all,
 * who waits for them waits for us. */
static int patience(struct server *server)
{
    int64_t now = metrics_serve_now_ms(), least = -1;

    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        struct connection *connection = &server->connections[i];
        int64_t left = connection->deadline_ms - now;

        if (connection->stage == FREE || (connection->stage == WAITING && !server->metrics))
            continue;
        if (left <= 0 && connection->stage != WAITING)
            metrics_serve_drop(connection);
        else if (least < 0 || left < least)
            least = left < 0 ? 0 : left;
    }
    return (int)least;
}

static int serve_once(struct server *server)
{
    static const short events[] = {[READING] = POLLIN, [WRITING] = POLLOUT, [DRAINING] = POLLIN};
    struct pollfd polled[CONNECTIONS_MAX + 2];
    int patience_ms;

    answer_waiting(server);
    patience_ms = patience(server);
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        polled[i] = (struct pollfd){server->connections[i].stage == FREE ? -1 : server->connections[i].fd,
                                    events[server->connections[i].stage], 0};
    polled[CONNECTIONS_MAX] = (struct pollfd){server->fd, POLLIN, 0};
    polled[CONNECTIONS_MAX + 1] = (struct pollfd){server->looked[0], POLLIN, 0};
    if (poll(polled, CONNECTIONS_MAX + 2, patience_ms) < 0)
        return errno == EINTR ? 0 : -1;
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        if (polled[i].revents)
            metrics_serve_go_on(server, &server->connections[i]);
    if (polled[CONNECTIONS_MAX + 1].revents)
        end_look(server);
    if (polled[CONNECTIONS_MAX].revents)
        take_client(server);
    return 0;
}

static bool is_loopback(const struct sockaddr_storage *address)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;

    return address->ss_family == AF_INET ? ntohl(v4->sin_addr.s_addr) >> 24 == 127
                                         : IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static void announce(int fd)
{
    struct sockaddr_storage address = {.ss_family = AF_INET};
    socklen_t bytes = sizeof(address);
    char text[INET6_ADDRSTRLEN] = "";
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address;

    getsockname(fd, (struct sockaddr *)&address, &bytes);
    if (address.ss_family == AF_INET) {
        inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
        ms_cli_note("metrics at http://%s:%d/metrics", text, ntohs(v4->sin_port));
    } else {
        inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
        ms_cli_note("metrics at http://[%s]:%d/metrics", text, ntohs(v6->sin6_port));
    }
    if (!is_loopback(&address))
        ms_cli_note("%s is not the loopback: whoever reaches it can read them", text);
    ms_ledgers_anywhere(0, NULL, NULL);
    ms_ledgers_say_others();
}

int ms_listen_parse(const char *text, struct ms_listen *listen_p)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)&listen_p->address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&listen_p->address;
    const char *colon = strrchr(text, ':');
    char host[INET6_ADDRSTRLEN + 2] = "127.0.0.1";
    size_t length = colon ? (size_t)(colon - text) : 0;
    long port;

    memset(listen_p, 0, sizeof(*listen_p));
    if (ms_cli_number("--listen: the port", colon ? colon + 1 : text, 0, 65535, &port) < 0)
        return -1;
    if (colon && length < sizeof(host))
        snprintf(host, sizeof(host), "%.*s", (int)length, text);
    if (length < sizeof(host) && inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
        listen_p->bytes = sizeof(*v4);
        return 0;
    }
    if (length > 2 && length < sizeof(host) && host[0] == '[' && host[length - 1] == ']') {
        host[length - 1] = '\0';
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
        listen_p->bytes = sizeof(*v6);
        if (inet_pton(AF_INET6, host + 1, &v6->sin6_addr) == 1)
            return 0;
    }
    ms_cli_error("--listen '%s' is not allowed: PORT, ADDRESS:PORT or [ADDRESS]:PORT, in digits", text);
    return -1;
}

int ms_metrics_serve(const struct ms_listen *where)
{
    struct server *server = calloc(1, sizeof(*server));
    int one = 1, status = server ? 0 : -1;

    if (server)
        server->fd = socket(where->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (status < 0 || server->fd < 0 || pipe2(server->looked, O_CLOEXEC) < 0 ||
        setsockopt(server->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
        bind(server->fd, (const struct sockaddr *)&where->address, where->bytes) < 0 ||
        listen(server->fd, CONNECTIONS_MAX) < 0) {
        ms_cli_error("cannot listen: %s", strerror(errno));
        status = -1;
    }
    if (status == 0)
        announce(server->fd);
    while (status == 0)
        status = serve_once(server);
    free(server);
    return MS_EXIT_USAGE;
}
