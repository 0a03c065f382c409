/* SPDX-License-Identifier: MIT */
/*
 * The floor for bench/serve: libmicrohttpd, set up as `assay serve` does it, answers every request
 * with the same file from memory.  Prints its port; ends when its standard input does.
 */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **state)
{
    (void)url, (void)method, (void)version, (void)upload, (void)upload_size;
    if (!*state) { /* an answer before the request's end would end the connection */
        *state = context;
        return MHD_YES;
    }
    return MHD_queue_response(connection, 200, context);
}

int main(int argc, char **argv)
{
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (!file) {
        fprintf(stderr, "usage: serve-floor FILE\n");
        return 2;
    }
    static char body[8 << 20];
    size_t length = fread(body, 1, sizeof(body), file);
    fclose(file);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(length, body, MHD_RESPMEM_PERSISTENT);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, answer, response, MHD_OPTION_SOCK_ADDR,
        (struct sockaddr *)&address, MHD_OPTION_THREAD_POOL_SIZE, 4u, MHD_OPTION_END);
    if (!daemon)
        return 1;
    printf("%u\n", MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    fflush(stdout);
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    MHD_stop_daemon(daemon);
    MHD_destroy_response(response);
    return 0;
}
