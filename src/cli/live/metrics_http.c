/* metrics_http.c - what a request has earned; see metrics.h.
 *
 * Floor 5. One method, one path. A page in a browser can have a name of its own lead to this machine and then
 * read what answers here: so Host must be an address, localhost, or this machine's name, never another's. */
#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cli/live/metrics.h"

struct head {
    unsigned hosts;
    bool host_is_ours, has_body, open;
};

static bool is_digits(const char *text)
{
    return strspn(text, "0123456789") == strlen(text);
}

/* This machine's name, whole or up to the first dot. */
static bool is_this_machine(const char *host)
{
    char name[256] = "";

    gethostname(name, sizeof(name) - 1);
    if (*name && !strcasecmp(host, name))
        return true;
    name[strcspn(name, ".")] = '\0';
    return *name && !strcasecmp(host, name);
}

/* Takes the text apart. */
static bool metrics_http_is_ours(char *host)
{
    struct in6_addr address;
    char *end = *host == '[' ? strchr(host, ']') : NULL, *port;

    if (*host == '[') {
        if (!end || (end[1] && (end[1] != ':' || !is_digits(end + 2))))
            return false;
        *end = '\0';
        return inet_pton(AF_INET6, host + 1, &address) == 1;
    }
    port = strchr(host, ':');
    if (port && !is_digits(port + 1))
        return false;
    if (port)
        *port = '\0';
    return inet_pton(AF_INET, host, &address) == 1 || !strcasecmp(host, "localhost") || is_this_machine(host);
}

/* One line of the head, without its end; 0, or -1: it is none. */
static int take_field(struct head *head, char *line)
{
    char *value = strchr(line, ':');

    if (!value || value == line || strcspn(line, " \t") < (size_t)(value - line))
        return -1;
    *value++ = '\0';
    value += strspn(value, " \t");
    for (char *end = value + strlen(value); end > value && (end[-1] == ' ' || end[-1] == '\t');)
        *--end = '\0';
    if (!strcasecmp(line, "host")) {
        head->hosts++;
        head->host_is_ours = metrics_http_is_ours(value);
    } else if (!strcasecmp(line, "transfer-encoding") ||
               (!strcasecmp(line, "content-length") && strcmp(value, "0")))
        head->has_body = true;
    else if (!strcasecmp(line, "accept"))
        head->open = strcasestr(value, "application/openmetrics-text") != NULL;
    return 0;
}

static bool is_text(const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)bytes[i] >= 0x7f ||
            ((unsigned char)bytes[i] < ' ' && !strchr("\r\n\t", bytes[i])) || !bytes[i])
            return false;
    return true;
}

/* The next line, ended by CR LF alone, cut off there; NULL: it is not. */
static char *cut_line(char **at_p)
{
    char *line = *at_p, *end = strpbrk(line, "\r\n");

    if (!end || end[0] != '\r' || end[1] != '\n')
        return NULL;
    *end = '\0';
    *at_p = end + 2;
    return line;
}

static int judge_line(char *line, bool host_is_ours)
{
    char *path = strchr(line, ' '), *version = path ? strchr(path + 1, ' ') : NULL;

    if (!version || path == line || version == path + 1)
        return 400;
    *path++ = '\0';
    *version++ = '\0';
    if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0)
        return 505;
    if (!host_is_ours)
        return 421;
    if (strcmp(line, "GET") != 0)
        return 405;
    return strcmp(path, "/metrics") ? 404 : 200;
}

int ms_http_check(const char *bytes, size_t length, bool *open_p)
{
    const char *end = memmem(bytes, length, "\r\n\r\n", 4);
    char text[MS_HTTP_HEAD_BYTES_MAX + 1], *at = text, *first, *line;
    struct head head = {0};

    if (!is_text(bytes, end ? (size_t)(end - bytes) : length))
        return 400;
    if (!end)
        return length < MS_HTTP_HEAD_BYTES_MAX ? 0 : 431;
    length = (size_t)(end - bytes) + 2;
    memcpy(text, bytes, length);
    text[length] = '\0';
    first = cut_line(&at);
    while (first && *at) {
        line = cut_line(&at);
        if (!line || take_field(&head, line) < 0)
            return 400;
    }
    if (!first || head.hosts != 1 || head.has_body)
        return 400;
    *open_p = head.open;
    return judge_line(first, head.host_is_ours);
}
