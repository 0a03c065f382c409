/* SPDX-License-Identifier: MIT */
/* allocates ROUNDS: allocates and frees blocks of many sizes in ROUNDS rounds.  Built with
 * OWN_ALLOCATOR, malloc and free are those of this file under the names that tcmalloc has for its
 * own: the same program over another allocator. */
#include <stdio.h>
#include <stdlib.h>

#ifdef OWN_ALLOCATOR
/* Blocks of one size, from a list: a small allocator that is all that this program needs. */
static union block {
    union block *next;
    char bytes[512];
} blocks[64], *list;

__attribute__((noinline)) void *tc_malloc(size_t size);
__attribute__((noinline)) void tc_free(void *pointer);

void *tc_malloc(size_t size)
{
    if (!list)
        for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
            blocks[i].next = list;
            list = &blocks[i];
        }
    union block *block = list;
    if (size > sizeof(*block))
        abort();
    list = block->next;
    for (size_t i = 0; i < 40; i++) /* so that it can be seen */
        __asm__ volatile("" ::: "memory");
    return block;
}

void tc_free(void *pointer)
{
    union block *block = pointer;
    block->next = list;
    list = block;
    for (size_t i = 0; i < 40; i++)
        __asm__ volatile("" ::: "memory");
}
#define malloc tc_malloc
#define free tc_free
#endif

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1000;
    char *kept[32] = {0};
    for (long i = 0; i < rounds; i++)
        for (size_t k = 0; k < 32; k++) {
            if (kept[k])
                free(kept[k]);
            kept[k] = NULL;
            kept[k] = malloc(16 + (k * 37 + (size_t)i) % 400);
            kept[k][0] = (char)i;
        }
    printf("%d\n", kept[3][0] == 'x');
    return 0;
}
