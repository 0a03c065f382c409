/* SPDX-License-Identifier: MIT */
/*
 * What a larger store costs by itself, without a network: the CPU time of a put of 512 bytes to a
 * key chosen by chance, in batches, with a checkpoint behind every 256 of them.
 *
 *   vr-store tree KEYS PUTS BATCH     the replica's own store, every key put once before
 *   vr-store array KEYS PUTS BATCH    the floor: the key is an index into an array of values; the
 * old value is kept and summed as the store must, everything that a batch needs is fetched ahead,
 * nothing is searched
 *
 * Prints microseconds per put.
 */
#include "base/memory.h"
#include "vr/core/service.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define PAGE_BYTES 4064u
#define VALUE_BYTES 512u
#define BATCHES_PER_CHECKPOINT 256u
#define BATCH_MAX 128u
#define KEPT 8192u

static uint64_t random_state = 88172645463325252;

static uint32_t random_key(uint32_t keys)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 8) % keys);
}

static double cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

struct store {
    struct vr_pages pages;
    struct vr_service *service;
    uint32_t batches, summed;
};

static uint32_t encode(unsigned char *out, uint32_t key, unsigned char fill)
{
    char text[32];
    unsigned char value[VALUE_BYTES];
    int size = snprintf(text, sizeof(text), "key-%u", key);
    memset(value, fill, sizeof(value));
    return vr_kv_encode(out, text, (size_t)size, NULL, 0, value, sizeof(value));
}

/* As checkpoint.c does it in memory: a few pages in each turn. */
static void checkpoint(struct store *s)
{
    uint32_t budget = 8 + s->pages.newest.count / (BATCHES_PER_CHECKPOINT / 4 + 1);
    if (!s->pages.has_pending && ++s->batches % BATCHES_PER_CHECKPOINT == 0) {
        vr_pages_freeze(&s->pages);
        s->summed = 0;
    }
    if (!s->pages.has_pending)
        return;
    while (s->summed < s->pages.newest.count && budget--)
        vr_pages_sum(&s->pages, s->summed++);
    if (s->summed == s->pages.newest.count)
        vr_pages_settle(&s->pages);
}

static void batch_of(struct store *s, const uint32_t *keys, uint32_t count)
{
    static unsigned char data[BATCH_MAX][1024], result[VR_RESULT_BYTES_MAX];
    struct vr_bytes names[BATCH_MAX] = {0};
    uint32_t size[BATCH_MAX], ignored;
    for (uint32_t i = 0; i < count; i++) {
        size[i] = encode(data[i], keys[i], (unsigned char)s->batches);
        vr_service_key(s->service, VR_OP_PUT, data[i], size[i], &names[i]);
    }
    vr_service_prefetch(s->service, names, count);
    for (uint32_t i = 0; i < count; i++)
        if (vr_service_execute(s->service, VR_OP_PUT, data[i], size[i], result, &ignored) != VR_OK)
            abort();
    checkpoint(s);
}

static double tree(uint32_t keys, uint32_t puts, uint32_t batch)
{
    struct store s = {0};
    uint32_t chosen[BATCH_MAX];
    vr_pages_init(&s.pages, 1 + vr_service_pages(PAGE_BYTES, keys), PAGE_BYTES);
    s.service = vr_service_new(keys, &s.pages, 1);
    for (uint32_t key = 0; key < keys; key++)
        batch_of(&s, &key, 1);
    double begun = cpu_us();
    for (uint32_t put = 0; put < puts; put += batch) {
        for (uint32_t i = 0; i < batch; i++)
            chosen[i] = random_key(keys);
        batch_of(&s, chosen, batch);
    }
    double each = (cpu_us() - begun) / puts;
    vr_service_free(s.service);
    vr_pages_done(&s.pages);
    return each;
}

static double array(uint32_t keys, uint32_t puts, uint32_t batch)
{
    size_t bytes = (size_t)keys * VALUE_BYTES;
    unsigned char *values = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    unsigned char *kept = memory_alloc((size_t)KEPT * VALUE_BYTES), data[1024];
    uint32_t chosen[BATCH_MAX];
    uint64_t sum = 0;
    if (values == MAP_FAILED)
        abort();
    madvise(values, bytes, MADV_NOHUGEPAGE);
    memset(values, 1, bytes);
    double begun = cpu_us();
    for (uint32_t put = 0; put < puts; put += batch) {
        for (uint32_t i = 0; i < batch; i++) {
            chosen[i] = random_key(keys);
            vr_pages_prefetch(values + (size_t)chosen[i] * VALUE_BYTES, VALUE_BYTES);
        }
        for (uint32_t i = 0; i < batch; i++) {
            unsigned char *at = values + (size_t)chosen[i] * VALUE_BYTES;
            uint32_t size = encode(data, chosen[i], (unsigned char)put);
            sum -= vr_page_sum(chosen[i], at, VALUE_BYTES);
            memcpy(kept + (put + i) % KEPT * VALUE_BYTES, at, VALUE_BYTES);
            memcpy(at, data + size - VALUE_BYTES, VALUE_BYTES);
            sum += vr_page_sum(chosen[i], at, VALUE_BYTES);
        }
    }
    double each = (cpu_us() - begun) / puts;
    munmap(values, bytes);
    free(kept);
    return sum == 1 ? each + 1e-9 : each; /* the sum is used, so that it is taken */
}

int main(int argc, char **argv)
{
    uint32_t number[3] = {0};
    for (int i = 0; i < 3 && argc == 5; i++)
        number[i] = (uint32_t)strtoul(argv[2 + i], NULL, 10);
    bool known = argc == 5 && (strcmp(argv[1], "tree") == 0 || strcmp(argv[1], "array") == 0);
    if (!known || !number[0] || !number[1] || !number[2] || number[2] > BATCH_MAX) {
        fprintf(stderr, "usage: vr-store tree|array KEYS PUTS BATCH (at most %u)\n", BATCH_MAX);
        return 2;
    }
    printf("%.3f\n",
           (strcmp(argv[1], "tree") == 0 ? tree : array)(number[0], number[1], number[2]));
    return 0;
}
