/* SPDX-License-Identifier: MIT */
/*
 * Filters of tracepoints: conditions over their fields, in the kernel's own language
 * (Documentation/trace/events.rst), checked there before an event is counted or recorded.
 */
#ifndef ASSAY_COUNTERS_FILTER_H
#define ASSAY_COUNTERS_FILTER_H

#include "counters/event.h"

/*
 * Gives the tracepoints of list[first..end) the filter.  An event of another kind is an error,
 * since it would be counted without the filter.
 */
int filter_assign(struct event_list *list, size_t first, size_t end, const char *filter,
                  struct error *err);
/* Parses the events of each -e and gives them their filters: one for all, or one for each -e. */
int filter_parse_events(struct event_list *list, const char *const *events, size_t event_count,
                        const char *const *filters, size_t filter_count, struct error *err);
/* Sets the filter of an event that was just opened; 0 when it has none. */
int filter_apply(const struct event *e, int fd, struct error *err);

#endif
