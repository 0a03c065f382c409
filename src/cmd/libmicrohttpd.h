/* SPDX-License-Identifier: MIT */
/* libmicrohttpd, loaded when `assay serve` starts: see base/library.h. */
#ifndef ASSAY_CMD_LIBMICROHTTPD_H
#define ASSAY_CMD_LIBMICROHTTPD_H

#include "base/library.h"
#include "config.h"

#include <microhttpd.h>

#if LOAD_LIBRARIES
#define MHD_FUNCTIONS(X)                                      \
    X(MHD_add_response_header)                                \
    X(MHD_create_response_from_buffer)                        \
    X(MHD_create_response_from_buffer_with_free_callback_cls) \
    X(MHD_create_response_from_callback)                      \
    X(MHD_destroy_response)                                   \
    X(MHD_get_daemon_info)                                    \
    X(MHD_lookup_connection_value)                            \
    X(MHD_queue_response)                                     \
    X(MHD_start_daemon)                                       \
    X(MHD_stop_daemon)
LIBRARY_TABLE(mhd, MHD_FUNCTIONS, "libmicrohttpd.so.12", "libmicrohttpd12", "'assay serve'");
#define MHD_add_response_header mhd.MHD_add_response_header
#define MHD_create_response_from_buffer mhd.MHD_create_response_from_buffer
#define MHD_create_response_from_buffer_with_free_callback_cls \
    mhd.MHD_create_response_from_buffer_with_free_callback_cls
#define MHD_create_response_from_callback mhd.MHD_create_response_from_callback
#define MHD_destroy_response mhd.MHD_destroy_response
#define MHD_get_daemon_info mhd.MHD_get_daemon_info
#define MHD_lookup_connection_value mhd.MHD_lookup_connection_value
#define MHD_queue_response mhd.MHD_queue_response
#define MHD_start_daemon mhd.MHD_start_daemon
#define MHD_stop_daemon mhd.MHD_stop_daemon
#else
LIBRARY_LINKED(mhd);
#endif

#endif
