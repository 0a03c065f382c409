/* SPDX-License-Identifier: MIT */
/* Small programs for bench/exact/model, by name: each does one kind of work for some tenths of a
 * second. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252ULL;

/* xorshift64 (Marsaglia, "Xorshift RNGs", 2003). */
static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static void *room(size_t bytes)
{
    void *p = malloc(bytes);
    if (!p)
        exit(1);
    return p;
}

/* Through the elements of a list, one after another, in random order. */
static uint64_t chase(size_t bytes, size_t steps)
{
    size_t count = bytes / 64;
    struct {
        size_t next;
        char rest[56];
    } *list = room(count * 64);
    size_t *order = room(count * sizeof(*order));
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    for (size_t i = count - 1; i; i--) {
        size_t k = next() % i, t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
    for (size_t i = 0; i < count; i++)
        list[order[i]].next = order[(i + 1) % count];
    size_t at = 0;
    while (steps--)
        at = list[at].next;
    return at;
}

static uint64_t sum(void)
{
    size_t count = 4 << 20;
    uint64_t *v = room(count * sizeof(*v)), total = 0;
    for (size_t i = 0; i < count; i++)
        v[i] = next();
    for (int k = 0; k < 12; k++)
        for (size_t i = 0; i < count; i++)
            total += v[i] ^ (uint64_t)k;
    return total;
}

static uint64_t matrix(void)
{
    enum { N = 320 };
    static double a[N][N], b[N][N], c[N][N];
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++) {
            a[i][k] = (double)(next() % 100);
            b[i][k] = (double)(next() % 100);
        }
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            for (int j = 0; j < N; j++)
                c[i][k] += a[i][j] * b[j][k];
    return (uint64_t)c[N / 2][N / 3];
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t sorts(void)
{
    size_t count = 400000;
    uint64_t *v = room(count * sizeof(*v));
    for (size_t i = 0; i < count; i++)
        v[i] = next();
    qsort(v, count, sizeof(*v), by_value);
    return v[count / 2];
}

static uint64_t branches(void)
{
    uint64_t total = 0;
    for (int i = 0; i < 12000000; i++) {
        uint64_t r = next();
        if (r & 1)
            total += r >> 3;
        else
            __asm__ volatile("" : "+r"(total));
        if (r & 6)
            __asm__ volatile("" : "+r"(total));
        else
            total ^= r;
    }
    return total;
}

static uint64_t hash(void)
{
    size_t size = 1 << 18, found = 0;
    uint64_t *table = room(size * sizeof(*table));
    memset(table, 0, size * sizeof(*table));
    for (int i = 0; i < 5000000; i++) {
        uint64_t key = next() % 200000 + 1;
        size_t at = (key * 0x9e3779b97f4a7c15ULL) >> 46;
        while (table[at] && table[at] != key)
            at = (at + 1) & (size - 1);
        found += table[at] == key;
        table[at] = key;
    }
    return found;
}

static uint64_t sieve(void)
{
    size_t size = 12 << 20, count = 0;
    char *composite = room(size);
    memset(composite, 0, size);
    for (size_t i = 2; i < size; i++) {
        if (composite[i])
            continue;
        count++;
        for (size_t k = i * i; k < size; k += i)
            composite[k] = 1;
    }
    return count;
}

static __attribute__((noinline)) uint64_t fibonacci(unsigned n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static uint64_t mandelbrot(void)
{
    uint64_t total = 0;
    for (int y = 0; y < 250; y++)
        for (int x = 0; x < 250; x++) {
            double a = 0, b = 0, r = x / 125.0 - 1.5, i = y / 125.0 - 1;
            int n = 0;
            for (; n < 800 && a * a + b * b < 4; n++) {
                double t = a * a - b * b + r;
                b = 2 * a * b + i;
                a = t;
            }
            total += (uint64_t)n;
        }
    return total;
}

static uint64_t copies(void)
{
    size_t bytes = 6 << 20;
    char *a = room(bytes), *b = room(bytes);
    memset(a, 1, bytes);
    for (int i = 0; i < 150; i++) {
        memcpy(b, a, bytes);
        a[i] = b[bytes - 1 - (size_t)i];
    }
    return (uint64_t)a[7];
}

static uint64_t strings(void)
{
    uint64_t total = 0;
    for (int i = 0; i < 500000; i++) {
        char line[100], *save = NULL;
        snprintf(line, sizeof(line), "%d,%x,some words,%d", i, i * 7, i % 13);
        for (char *word = strtok_r(line, ",", &save); word; word = strtok_r(NULL, ",", &save))
            total += strlen(word) + strtoul(word, NULL, 10);
    }
    return total;
}

static uint64_t divides(void)
{
    uint64_t total = 1;
    for (uint64_t i = 1; i < 25000000; i++)
        total += (total + 1000000007) / (i | 1);
    return total;
}

static uint64_t tree(void)
{
    struct node {
        struct node *side[2];
        uint64_t key;
    } *root = NULL;
    uint64_t depth = 0;
    for (int i = 0; i < 150000; i++) {
        uint64_t key = next();
        struct node **at = &root;
        for (; *at; depth++)
            at = &(*at)->side[key > (*at)->key];
        *at = room(sizeof(**at));
        **at = (struct node){{NULL, NULL}, key};
    }
    return depth;
}

static uint64_t crc(void)
{
    static uint32_t table[256];
    static unsigned char bytes[1 << 16];
    uint32_t c = ~0u;
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t x = i;
        for (int k = 0; k < 8; k++)
            x = x >> 1 ^ (x & 1 ? 0xedb88320u : 0);
        table[i] = x;
    }
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)next();
    for (int k = 0; k < 1000; k++)
        for (size_t i = 0; i < sizeof(bytes); i++)
            c = table[(c ^ bytes[i]) & 255] ^ c >> 8;
    return c;
}

static uint64_t dispatch(void)
{
    static unsigned char code[4096];
    uint64_t a = 1, b = 2;
    for (size_t i = 0; i < sizeof(code); i++)
        code[i] = (unsigned char)(next() % 6);
    for (int k = 0; k < 15000; k++)
        for (size_t i = 0; i < sizeof(code); i++)
            switch (code[i]) {
            case 0:
                a += b;
                break;
            case 1:
                b ^= a;
                break;
            case 2:
                a = a << 1 | a >> 63;
                break;
            case 3:
                b += 3;
                break;
            case 4:
                a -= b >> 2;
                break;
            default:
                __asm__ volatile("" : "+r"(a));
                break;
            }
    return a ^ b;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    uint64_t r = !strcmp(what, "chase")        ? chase(64 << 20, 2500000)
                 : !strcmp(what, "chase-near") ? chase(512 << 10, 30000000)
                 : !strcmp(what, "sum")        ? sum()
                 : !strcmp(what, "matrix")     ? matrix()
                 : !strcmp(what, "sorts")      ? sorts()
                 : !strcmp(what, "branches")   ? branches()
                 : !strcmp(what, "hash")       ? hash()
                 : !strcmp(what, "sieve")      ? sieve()
                 : !strcmp(what, "fibonacci")  ? fibonacci(34)
                 : !strcmp(what, "mandelbrot") ? mandelbrot()
                 : !strcmp(what, "copies")     ? copies()
                 : !strcmp(what, "strings")    ? strings()
                 : !strcmp(what, "divides")    ? divides()
                 : !strcmp(what, "tree")       ? tree()
                 : !strcmp(what, "crc")        ? crc()
                 : !strcmp(what, "dispatch")   ? dispatch()
                                               : (exit(2), 0);
    printf("%llu\n", (unsigned long long)r);
    return 0;
}
