/* SPDX-License-Identifier: MIT */
/* Measured values as people read them: four digits, a unit that suits their size. */
#ifndef ASSAY_BASE_MEASURED_H
#define ASSAY_BASE_MEASURED_H

#include "base/strings.h"

/* 12345678 "ns" -> "12.35 ms", 1536 "bytes" -> "1.50 KiB", 1234567 "" -> "1,234,567", else digits
 * and unit; "-" for what is not finite. */
void strbuf_put_measured(struct strbuf *out, double value, const char *unit);
/* The unit after a number, with a blank before it: of one, " call" for "calls". */
void strbuf_put_unit(struct strbuf *out, bool is_one, const char *unit);
/* Whether values of this unit may be shown in a smaller or a larger one. */
bool measured_scales(const char *unit);
/* From now on times are shown in this unit: "microsecond", "millisecond", "second"; NULL: in what
 * suits each. */
void measured_use_time_unit(const char *name);
/* With thousands separated: "1,234.50", right-aligned to `width`. */
void strbuf_put_grouped(struct strbuf *out, double value, int decimals, int width);
/* "2026-11-15 06:12" in local time; "" for 0. */
char *format_moment(uint64_t at_ns, char *buffer, size_t size);

#endif
