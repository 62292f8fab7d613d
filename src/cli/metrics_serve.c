/* metrics_serve.c - the connections of memshim metrics --listen; see metrics.h.
 *
 * Floor 5. One thread that never waits for a client: each has a bounded number of bytes and until its
 * deadline to say what it wants and take the answer. When all places are taken, whoever has been here longest
 * goes. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/metrics.h"

/* A scrape over the loopback takes milliseconds; figures a second old are as good, and clients that ask all
 * the time do not make this process busy: figures that took long to collect are good for three times as long.
 * tests/ledger/metrics.py has more clients than places. */
enum { CONNECTIONS_MAX = 16, DEADLINE_MS = 5000, FRESH_MS = 1000, FRESH_TIMES = 3 };

enum stage { FREE, READING, WRITING, DRAINING };

struct connection {
    enum stage stage;
    int fd;
    int64_t deadline_ms;
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
};

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void drop(struct connection *connection)
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

static struct ms_metrics *fresh(struct server *server)
{
    int64_t begun_ms = now_ms(), good_ms;

    if (server->metrics && begun_ms < server->stale_ms)
        return server->metrics;
    ms_metrics_close(server->metrics);
    server->metrics = ms_metrics_collect();
    good_ms = FRESH_TIMES * (now_ms() - begun_ms);
    server->stale_ms = now_ms() + (good_ms > FRESH_MS ? good_ms : FRESH_MS);
    return server->metrics;
}

static char *body_of(struct server *server, int *status_p, bool open, size_t *bytes_p)
{
    struct ms_metrics *metrics = *status_p == 200 ? fresh(server) : NULL;
    char *body = NULL;
    FILE *out = open_memstream(&body, bytes_p);

    if (!out)
        return NULL;
    if (*status_p == 200 && (!metrics || ms_metrics_write(metrics, out, open) < 0))
        *status_p = 503;
    if (*status_p != 200)
        fprintf(out, "%s; GET /metrics by this machine's name or address\n", reason_of(*status_p));
    if (fclose(out) == 0)
        return body;
    free(body);
    return NULL;
}

static int make_answer(struct server *server, struct connection *connection, int status, bool open)
{
    size_t bytes;
    char *body = body_of(server, &status, open, &bytes);
    FILE *out = body ? open_memstream(&connection->answer, &connection->bytes) : NULL;

    if (out) {
        fprintf(out, "HTTP/1.1 %d %s\r\nContent-Type: %s; charset=utf-8\r\nContent-Length: %zu\r\n", status,
                reason_of(status),
                status != 200 ? "text/plain"
                : open        ? "application/openmetrics-text; version=1.0.0"
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

static void read_head(struct server *server, struct connection *connection)
{
    ssize_t got = recv(connection->fd, connection->head + connection->length,
                       sizeof(connection->head) - connection->length, 0);
    bool open = false;
    int status;

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        drop(connection);
        return;
    }
    connection->length += (size_t)got;
    status = ms_http_judge(connection->head, connection->length, &open);
    if (!status)
        return;
    connection->sent = 0;
    connection->stage = WRITING;
    if (make_answer(server, connection, status, open) < 0)
        drop(connection);
}

/* What the client still says is read and forgotten: closed over it, the answer would be lost. */
static void write_answer(struct connection *connection)
{
    ssize_t sent = send(connection->fd, connection->answer + connection->sent,
                        connection->bytes - connection->sent, MSG_NOSIGNAL);

    if (sent < 0 && errno != EAGAIN && errno != EINTR)
        drop(connection);
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
        drop(connection);
}

static void go_on(struct server *server, struct connection *connection)
{
    if (connection->stage == READING)
        read_head(server, connection);
    else if (connection->stage == WRITING)
        write_answer(connection);
    else if (connection->stage == DRAINING)
        drain(connection);
}

static struct connection *place(struct server *server)
{
    struct connection *oldest = &server->connections[0];

    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        if (server->connections[i].stage == FREE)
            return &server->connections[i];
        if (server->connections[i].deadline_ms < oldest->deadline_ms)
            oldest = &server->connections[i];
    }
    drop(oldest);
    return oldest;
}

static void take_client(struct server *server)
{
    int fd = accept4(server->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct connection *connection;

    if (fd < 0)
        return;
    connection = place(server);
    connection->fd = fd;
    connection->stage = READING;
    connection->length = 0;
    connection->deadline_ms = now_ms() + DEADLINE_MS;
}

/* Drops who is late; how long the others may take at most, -1 without any. */
static int patience(struct server *server)
{
    int64_t now = now_ms(), least = -1;

    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        struct connection *connection = &server->connections[i];
        int64_t left = connection->deadline_ms - now;

        if (connection->stage != FREE && left <= 0)
            drop(connection);
        else if (connection->stage != FREE && (least < 0 || left < least))
            least = left;
    }
    return (int)least;
}

static int serve_once(struct server *server)
{
    struct pollfd polled[CONNECTIONS_MAX + 1];
    int patience_ms = patience(server);

    for (int i = 0; i < CONNECTIONS_MAX; i++)
        polled[i] = (struct pollfd){server->connections[i].stage == FREE ? -1 : server->connections[i].fd,
                                    server->connections[i].stage == WRITING ? POLLOUT : POLLIN, 0};
    polled[CONNECTIONS_MAX] = (struct pollfd){server->fd, POLLIN, 0};
    if (poll(polled, CONNECTIONS_MAX + 1, patience_ms) < 0)
        return errno == EINTR ? 0 : -1;
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        if (polled[i].revents)
            go_on(server, &server->connections[i]);
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
    if (status < 0 || server->fd < 0 ||
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
