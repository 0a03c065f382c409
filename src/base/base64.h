/* SPDX-License-Identifier: MIT */
/* Base64 (RFC 4648, section 4). */
#ifndef ASSAY_BASE_BASE64_H
#define ASSAY_BASE_BASE64_H

#include "base/strings.h"

/* Without line ends. */
void strbuf_put_base64(struct strbuf *out, const void *bytes, size_t length);
/* Up to the first byte that does not belong to it; false when it is broken. */
bool strbuf_get_base64(struct strbuf *out, const char *text, size_t length);

#endif
