/* A few threads that share the chunks of one job after another; pool.c says how. */
#pragma once
#include <stdint.h>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

struct pool;
typedef void (*pool_task)(void *job, int chunk, int thread);

/* Runs task(job, chunk, thread) for each chunk below `chunks`, in any order, and returns when all are done. The caller
 * is thread 0. One caller at a time. */
void pool_run(struct pool *pool, pool_task task, void *job, int chunks);
EXPORT int pool_threads(const struct pool *pool);
