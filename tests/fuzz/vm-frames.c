/* SPDX-License-Identifier: MIT */
/* Fuzzes what an emulated machine may send. */
#include "base/memory.h"
#include "vm/frames.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take(const struct vm_frame *frame)
{
    CLEANUP(vm_counts_done) struct vm_counts counts = {0};
    struct vm_usage usage;
    int status;
    vm_counts_parse(frame->payload, frame->length, &counts);
    vm_usage_parse(frame->payload, frame->length, &usage);
    vm_exit_parse(frame->payload, frame->length, &status);
    for (size_t i = 0; i < counts.count; i++)
        assert(counts.items[i].name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(vm_frames_done) struct vm_frames frames = {0};
    struct vm_frame frame;
    struct error err;
    /* In two parts: what is whole only with the second must be found all the same. */
    size_t half = size / 2;
    for (int part = 0; part < 2; part++) {
        vm_frames_add(&frames, data + (part ? half : 0), part ? size - half : half);
        int r;
        while ((r = vm_frames_next(&frames, &frame, &err)) == 1)
            take(&frame);
        if (r < 0)
            break;
    }
    return 0;
}
