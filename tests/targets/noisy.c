/* SPDX-License-Identifier: MIT */
/*
 * Reports a metric whose truth is known: noisy FILE COUNTER SPREAD prints the number in FILE times
 * 1 + SPREAD * (standard normal noise) as the metric "latency" in ms.  The n-th run that shares a
 * COUNTER has the n-th value of the noise, so that a test gives the same whenever it runs.
 */
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static double uniform(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    FILE *file = fopen(argv[1], "r");
    double level, spread = atof(argv[3]);
    if (!file || fscanf(file, "%lf", &level) != 1)
        return 3;
    fclose(file);
    int fd = open(argv[2], O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (fd < 0 || write(fd, ".", 1) != 1)
        return 4;
    uint64_t state = (uint64_t)lseek(fd, 0, SEEK_CUR) * 1000003;
    double first = uniform(&state), second = uniform(&state);
    double noise = sqrt(-2 * log(first)) * cos(2 * M_PI * second);
    const char *metrics = getenv("ASSAY_METRICS_FD");
    if (metrics)
        dprintf(atoi(metrics), "assay.metric latency %.17g ms\n", level * (1 + spread * noise));
    return 0;
}
