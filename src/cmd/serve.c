/* SPDX-License-Identifier: MIT */
/*
 * `assay serve`: the store in a browser.  HTTP is libmicrohttpd's work; what is decided here is who
 * gets an answer: only who knows the token, only under a name of this host, only to read.  Every
 * connection has a thread: whoever is slow holds up nobody else.  What the threads share is in
 * report/serve_store.h.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "cmd/cmd.h"
#include "config.h"
#include "report/serve/serve_store.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/random.h>
#include <unistd.h>

struct serve_options {
    const char *db, *token;
    uint64_t port;
};

#define O(field) offsetof(struct serve_options, field)

static const struct option options[] = {
    {0, "db", OPTION_STRING, O(db), "PATH", CMD_DB_HELP, "file"},
    {'p', "port", OPTION_U64, O(port), "N", "the port to listen on (default: a free one)", NULL},
    {0, "token", OPTION_STRING, O(token), "WORD", "use this token instead of a random one", NULL},
    {0},
};

static int check(const struct serve_options *o, struct error *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    if (o->port > 65535)
        return error_set(err, -EINVAL, "--port must be at most 65535");
    if (o->token && (strlen(o->token) < 8 || strlen(o->token) > 64 ||
                     strspn(o->token, letters) != strlen(o->token)))
        return error_set(err, -EINVAL, "--token must be 8 to 64 letters and digits");
    return 0;
}

#if HAVE_MICROHTTPD
#include "cmd/libmicrohttpd.h"

#include <arpa/inet.h>
#include <netinet/in.h>

enum {
    CONNECTIONS_MAX = 800,
    STREAMS_MAX = 200, /* of these: pages that are open and are told of changes */
    TIMEOUT_S = 15,
    QUIET_S = 5, /* a stream says something at least so often */
    LOOK_MS = 500,
    MEMORY_BYTES = 32 * 1024,
    STACK_BYTES = 1 << 20
};

struct server {
    struct serve_store *store;
    char token[65];
    uint16_t port;
    atomic_bool is_ending; /* set before the daemon is stopped; streams look at it */
    atomic_uint stream_count;
};

static void release(void *body)
{
    serve_body_release(body);
}

static const char html_type[] = "text/html; charset=utf-8";

static enum MHD_Result answer(struct MHD_Connection *c, unsigned status, struct MHD_Response *r,
                              const char *type)
{
    if (!r)
        return MHD_NO;
    MHD_add_response_header(r, "Content-Type", type);
    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(r, "Cache-Control", "no-store");
    MHD_add_response_header(r, "Cross-Origin-Resource-Policy", "same-origin");
    MHD_add_response_header(r, "X-Frame-Options", "DENY");
    if (status == 405)
        MHD_add_response_header(r, "Allow", "GET, HEAD");
    enum MHD_Result result = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return result;
}

static enum MHD_Result refuse(struct MHD_Connection *c, unsigned status, const char *words)
{
    CLEANUP(strbuf_done) struct strbuf body = {0};
    strbuf_printf(&body, "<!doctype html><title>%u</title><p>%s</p>\n", status, words);
    return answer(c, status,
                  MHD_create_response_from_buffer(body.length, body.data, MHD_RESPMEM_MUST_COPY),
                  html_type);
}

/* A page elsewhere may let a name of its own point to 127.0.0.1; then the browser sends that name.
 */
static bool is_this_host(const struct server *s, const char *host)
{
    char names[2][32];
    snprintf(names[0], sizeof(names[0]), "127.0.0.1:%u", s->port);
    snprintf(names[1], sizeof(names[1]), "localhost:%u", s->port);
    return host && (str_eq(host, names[0]) || str_eq(host, names[1]));
}

/* What stands behind "/TOKEN" in the path, or NULL.  Takes as long for a near miss as for any. */
static const char *behind_token(const struct server *s, const char *url)
{
    size_t length = strlen(s->token);
    if (url[0] != '/' || strlen(url) < length + 1)
        return NULL;
    unsigned different = 0;
    for (size_t i = 0; i < length; i++)
        different |= (unsigned char)url[i + 1] ^ (unsigned char)s->token[i];
    return different || (url[length + 1] && url[length + 1] != '/') ? NULL : url + length + 1;
}

static const char *argument(struct MHD_Connection *c, const char *name)
{
    return MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, name);
}

/* ---- server-sent events ---- */

/* What one page that is open has been told. */
struct stream {
    struct server *server;
    struct strbuf pending; /* to be sent, from `sent` on */
    size_t sent;
    char *last;
    uint64_t spoke_at_ns;
};

static void stream_free(void *context)
{
    struct stream *stream = context;
    atomic_fetch_sub(&stream->server->stream_count, 1);
    strbuf_done(&stream->pending);
    free(stream->last);
    free(stream);
}

/* An event where the experiments have changed; now and then a comment, so that the connection
 * does not look dead. */
static void look_again(struct stream *stream)
{
    struct serve_body *body =
        serve_store_page(stream->server->store, &(struct serve_request){.path = SERVE_LIVE});
    uint64_t now_ns = clock_now_ns();
    strbuf_clear(&stream->pending);
    stream->sent = 0;
    if (body->status == 200 && (!stream->last || !str_eq(stream->last, body->text))) {
        free(stream->last);
        stream->last = memory_strdup(body->text);
        strbuf_printf(&stream->pending, "data: %s\n\n", body->text);
    } else if (now_ns - stream->spoke_at_ns > QUIET_S * NS_PER_S) {
        strbuf_puts(&stream->pending, ":\n\n");
    }
    serve_body_release(body);
    if (stream->pending.length)
        stream->spoke_at_ns = now_ns;
}

/* The connection has this thread to itself: it may wait here. */
static ssize_t stream_read(void *context, uint64_t position, char *buffer, size_t most)
{
    (void)position;
    struct stream *stream = context;
    for (;;) {
        size_t left = stream->pending.length - stream->sent;
        if (left) {
            size_t count = left < most ? left : most;
            memcpy(buffer, stream->pending.data + stream->sent, count);
            stream->sent += count;
            return (ssize_t)count;
        }
        if (stream->last)
            for (int i = 0; i < LOOK_MS / 50 && !atomic_load(&stream->server->is_ending); i++)
                usleep(50 * 1000);
        if (atomic_load(&stream->server->is_ending))
            return MHD_CONTENT_READER_END_OF_STREAM;
        look_again(stream);
    }
}

static enum MHD_Result start_stream(struct MHD_Connection *c, struct server *s)
{
    if (atomic_fetch_add(&s->stream_count, 1) >= STREAMS_MAX) {
        atomic_fetch_sub(&s->stream_count, 1);
        return refuse(c, 503, "Too many pages are open.");
    }
    struct stream *stream = memory_zalloc(1, sizeof(*stream));
    *stream = (struct stream){.server = s, .spoke_at_ns = clock_now_ns()};
    struct MHD_Response *r =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, stream_read, stream, stream_free);
    if (!r)
        stream_free(stream);
    return answer(c, 200, r, "text/event-stream");
}

/* The address without its last slash, from which no link would lead on. */
static enum MHD_Result lead_home(struct MHD_Connection *c, const struct server *s)
{
    char to[80];
    snprintf(to, sizeof(to), "/%s/", s->token);
    struct MHD_Response *r = MHD_create_response_from_buffer(0, to, MHD_RESPMEM_MUST_COPY);
    if (r)
        MHD_add_response_header(r, "Location", to);
    return answer(c, 301, r, html_type);
}

static bool is_json(const char *path)
{
    return str_has_prefix(path, SERVE_API) || str_eq(path, SERVE_LIVE);
}

static enum MHD_Result handle(void *context, struct MHD_Connection *c, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **state)
{
    (void)version, (void)upload;
    struct server *s = context;
    bool is_read = str_eq(method, "GET") || str_eq(method, "HEAD");
    if (*upload_size) { /* what was sent along is not read */
        *upload_size = 0;
        return MHD_YES;
    }
    /* An answer at the first call, before the request's end, also ends the connection. */
    if (is_read && !*state) {
        *state = s;
        return MHD_YES;
    }
    if (!is_this_host(s, MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Host")))
        return refuse(c, 403, "This server answers only under its own name.");
    const char *path = behind_token(s, url);
    if (!path)
        return refuse(c, 404, "There is no such page.");
    if (!is_read)
        return refuse(c, 405, "This server is read-only.");
    if (!*path)
        return lead_home(c, s);
    if (str_eq(path, "/events") && str_eq(method, "GET"))
        return start_stream(c, s);
    struct serve_request request = {.path = path,
                                    .query = argument(c, "q"),
                                    .page = argument(c, "page"),
                                    .base = argument(c, "base"),
                                    .new = argument(c, "new"),
                                    .name = argument(c, "name"),
                                    .metric = argument(c, "metric")};
    struct serve_body *body = serve_store_page(s->store, &request);
    unsigned status = (unsigned)body->status;
    struct MHD_Response *r = MHD_create_response_from_buffer_with_free_callback_cls(
        body->length, body->text, release, body);
    if (!r)
        serve_body_release(body);
    return answer(c, status, r, is_json(path) ? "application/json" : html_type);
}

static void make_token(struct server *s, const char *given)
{
    uint8_t bytes[16];
    if (given) {
        snprintf(s->token, sizeof(s->token), "%s", given);
        return;
    }
    while (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
    }
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(s->token + 2 * i, 3, "%02x", bytes[i]);
}

static struct MHD_Daemon *start(struct server *s, uint64_t port, struct error *err)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    errno = 0;
    struct MHD_Daemon *d = MHD_start_daemon(
        MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_THREAD_PER_CONNECTION, 0, NULL, NULL, handle, s,
        MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&address, MHD_OPTION_THREAD_STACK_SIZE,
        (size_t)STACK_BYTES, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)MEMORY_BYTES, MHD_OPTION_END);
    if (!d) {
        error_errno(err, errno ? -errno : -EIO, "listening on 127.0.0.1, port %llu",
                    (unsigned long long)port);
        return NULL;
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT);
    s->port = info ? info->port : (uint16_t)port;
    return d;
}

static int serve(const struct serve_options *o, struct error *err)
{
    struct server s = {0};
    int r = library_load(&mhd_library, err);
    if (r < 0)
        return r;
    r = serve_store_new(&s.store, store_place(o->db), err); /* a wrong place is told now */
    if (r < 0)
        return r;
    make_token(&s, o->token);
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_BLOCK, &ends, NULL); /* before the threads, which have it from here */
    struct MHD_Daemon *d = start(&s, o->port, err);
    if (!d) {
        serve_store_free(s.store);
        return err->code;
    }
    printf("http://127.0.0.1:%u/%s/\n", s.port, s.token);
    fflush(stdout);
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "assay serve: open this address in a browser; Ctrl-C stops the server\n");
    int signal_number;
    sigwait(&ends, &signal_number);
    atomic_store(&s.is_ending, true);
    MHD_stop_daemon(d);
    serve_store_free(s.store);
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\nassay serve: stopped; nothing was written to the store\n");
    return 0;
}

#else

static int serve(const struct serve_options *o, struct error *err)
{
    (void)o;
    return error_set(err, -ENOTSUP,
                     "assay was built without libmicrohttpd (Debian: libmicrohttpd-dev); "
                     "'assay html' writes a report to a file");
}

#endif

static int run(int argc, char **argv)
{
    struct error err = {0};
    struct serve_options o = {0};
    int first = options_parse_mixed(options, &o, argc, argv, &err);
    if (first == OPTIONS_HELP)
        return cmd_help(&verb_serve);
    if (first > 0 && first < argc)
        first = error_set(&err, -EINVAL,
                          "unexpected argument '%s'; serve takes none; name the store with --db",
                          argv[first]);
    if (first > 0 && check(&o, &err) < 0)
        first = -EINVAL;
    if (first < 0)
        return cmd_usage(&verb_serve, &err);
    int r = serve(&o, &err);
    return r < 0 ? cmd_fail(&verb_serve, &err, EXIT_TROUBLE) : EXIT_DONE;
}

const struct verb verb_serve = {
    .name = "serve",
    .summary = "browse the store in a web browser",
    .synopsis = "[options]",
    .examples = "  assay serve\n"
                "  assay serve --db results.db --port 8080\n",
    .options = options,
    .run = run,
};
