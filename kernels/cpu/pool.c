/* Computes:  runs the chunks of a job on the caller and threads - 1 helpers.
 * Arguments: pool_create(threads): threads >= 1, the caller counted; pool_destroy joins the helpers.
 * Requires:  one caller at a time; a task must not call pool_run.
 * Launch:    the caller publishes (epoch, chunks left) in one 64-bit ticket; whoever lowers the ticket owns a chunk. A
 *            helper that the system has put aside holds no chunk, so it stalls nobody. Helpers spin for about the gap
 *            between two jobs, then sleep until the next one; they run at a lower priority than the user's windows.
 * Numerics:  none; which thread takes a chunk must not change what the chunk computes.
 * Oracle:    tests/kernels/cpu/test_pool.py counts every chunk exactly once.
 * Measured:  kernels/README.md.
 * Source:    own. */
#include <stdatomic.h>
#include <stdlib.h>

#include "pool.h"
#include "simd.h"

#ifdef _WIN32
#include <windows.h>
typedef SRWLOCK lock_type;
typedef CONDITION_VARIABLE signal_type;
typedef HANDLE thread_type;
#define lock_init(l) InitializeSRWLock(l)
#define lock_take(l) AcquireSRWLockExclusive(l)
#define lock_drop(l) ReleaseSRWLockExclusive(l)
#define signal_init(s) InitializeConditionVariable(s)
#define signal_all(s) WakeAllConditionVariable(s)
#define signal_wait(s, l) SleepConditionVariableSRW(s, l, INFINITE, 0)
#define give_way() SwitchToThread()
#else
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/resource.h>
#include <sys/syscall.h>
#endif
typedef pthread_mutex_t lock_type;
typedef pthread_cond_t signal_type;
typedef pthread_t thread_type;
#define lock_init(l) pthread_mutex_init(l, NULL)
#define lock_take(l) pthread_mutex_lock(l)
#define lock_drop(l) pthread_mutex_unlock(l)
#define signal_init(s) pthread_cond_init(s, NULL)
#define signal_all(s) pthread_cond_broadcast(s)
#define signal_wait(s, l) pthread_cond_wait(s, l)
#define give_way() sched_yield()
#endif

#define MAX_THREADS 64
#define PATIENCE 5000 /* looks at a chunk that does not end, some 50 us */
#define SPIN_NS 150000 /* longer than any gap inside a step, shorter than the gap that a user could feel in the fan */

struct helper {
    struct pool *pool;
    int thread;
    thread_type id;
};

struct pool {
    _Alignas(128) _Atomic uint64_t ticket; /* epoch << 32 | chunks that nobody has taken */
    _Alignas(128) _Atomic int finished;    /* chunks of this epoch that are done */
    _Alignas(128) _Atomic int sleepers;
    _Atomic int closing;
    _Atomic(pool_task) task;
    _Atomic(void *) job;
    int threads;
    lock_type lock;
    signal_type wake;
    struct helper helpers[MAX_THREADS];
};

static uint64_t now_ns(void) {
#ifdef _WIN32
    LARGE_INTEGER t, f;
    QueryPerformanceCounter(&t);
    QueryPerformanceFrequency(&f);
    return (uint64_t)((double)t.QuadPart * 1e9 / (double)f.QuadPart);
#else
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
#endif
}

/* Takes and runs chunks until none is left. A successful exchange proves that the job read before it is still the
 * current one: its fields change only after all of its chunks, this one included, have finished. */
static void work(struct pool *pool, int thread) {
    uint64_t seen = atomic_load_explicit(&pool->ticket, memory_order_acquire);
    while ((uint32_t)seen != 0) {
        pool_task task = atomic_load_explicit(&pool->task, memory_order_relaxed);
        void *job = atomic_load_explicit(&pool->job, memory_order_relaxed);
        if (atomic_compare_exchange_weak_explicit(&pool->ticket, &seen, seen - 1, memory_order_acq_rel,
                                                  memory_order_acquire)) {
            task(job, (int)((uint32_t)seen - 1), thread);
            atomic_fetch_add_explicit(&pool->finished, 1, memory_order_release);
            seen = atomic_load_explicit(&pool->ticket, memory_order_acquire);
        }
    }
}

static int has_work(struct pool *pool) {
    return (uint32_t)atomic_load_explicit(&pool->ticket, memory_order_acquire) != 0;
}

static void helper_loop(struct helper *helper) {
    struct pool *pool = helper->pool;
    while (!atomic_load(&pool->closing)) {
        uint64_t start = now_ns();
        int waited = 0;
        while (!has_work(pool) && !atomic_load_explicit(&pool->closing, memory_order_relaxed)) {
            cpu_relax();
            if ((++waited & 255) == 0 && now_ns() - start > SPIN_NS) {
                lock_take(&pool->lock);
                atomic_fetch_add(&pool->sleepers, 1);
                while ((uint32_t)atomic_load(&pool->ticket) == 0 && !atomic_load(&pool->closing))
                    signal_wait(&pool->wake, &pool->lock);
                atomic_fetch_sub(&pool->sleepers, 1);
                lock_drop(&pool->lock);
            }
        }
        work(pool, helper->thread);
    }
}

#ifdef _WIN32
static DWORD WINAPI helper_main(void *arg) {
    SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_BELOW_NORMAL);
    helper_loop(arg);
    return 0;
}
#else
static void *helper_main(void *arg) {
#ifdef __linux__
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 5);
#endif
    helper_loop(arg);
    return NULL;
}
#endif

static int start_helper(struct helper *helper) {
#ifdef _WIN32
    helper->id = CreateThread(NULL, 0, helper_main, helper, 0, NULL);
    return helper->id != NULL;
#else
    sigset_t all, before; /* signals belong to the program's own threads */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int ok = pthread_create(&helper->id, NULL, helper_main, helper) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ok;
#endif
}

EXPORT struct pool *pool_create(int threads) {
#ifdef _WIN32
    struct pool *pool = _aligned_malloc(sizeof(struct pool), 128);
#else
    struct pool *pool = aligned_alloc(128, (sizeof(struct pool) + 127) / 128 * 128);
#endif
    if (!pool) return NULL;
    memset(pool, 0, sizeof *pool);
    lock_init(&pool->lock);
    signal_init(&pool->wake);
    pool->threads = 1;
    threads = threads < 1 ? 1 : threads > MAX_THREADS ? MAX_THREADS : threads;
    for (int i = 1; i < threads; i++) {
        pool->helpers[i] = (struct helper){.pool = pool, .thread = i};
        if (!start_helper(&pool->helpers[i])) break; /* fewer helpers are slower, not wrong */
        pool->threads++;
    }
    return pool;
}

EXPORT void pool_destroy(struct pool *pool) {
    if (!pool) return;
    lock_take(&pool->lock);
    atomic_store(&pool->closing, 1);
    signal_all(&pool->wake);
    lock_drop(&pool->lock);
    for (int i = 1; i < pool->threads; i++) {
#ifdef _WIN32
        WaitForSingleObject(pool->helpers[i].id, INFINITE);
        CloseHandle(pool->helpers[i].id);
#else
        pthread_join(pool->helpers[i].id, NULL);
#endif
    }
#ifdef _WIN32
    _aligned_free(pool);
#else
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
#endif
}

EXPORT int pool_threads(const struct pool *pool) { return pool->threads; }

void pool_run(struct pool *pool, pool_task task, void *job, int chunks) {
    if (pool->threads == 1 || chunks <= 1) {
        for (int i = 0; i < chunks; i++) task(job, i, 0);
        return;
    }
    uint64_t epoch = atomic_load_explicit(&pool->ticket, memory_order_relaxed) >> 32;
    atomic_store_explicit(&pool->task, task, memory_order_relaxed);
    atomic_store_explicit(&pool->job, job, memory_order_relaxed);
    atomic_store_explicit(&pool->finished, 0, memory_order_relaxed);
    atomic_store(&pool->ticket, (epoch + 1) << 32 | (uint32_t)chunks);
    if (atomic_load(&pool->sleepers) > 0) {
        lock_take(&pool->lock);
        signal_all(&pool->wake);
        lock_drop(&pool->lock);
    }
    work(pool, 0);
    for (int waited = 0; atomic_load_explicit(&pool->finished, memory_order_acquire) != chunks; waited++) {
        if (waited < PATIENCE) cpu_relax();
        else give_way(); /* a helper was put aside in the middle of a chunk: perhaps for want of this very CPU */
    }
}

static void count_chunk(void *job, int chunk, int thread) {
    (void)thread;
    atomic_fetch_add((_Atomic int32_t *)job + chunk, 1);
}

/* For the tests: adds 1 to counts[i] for each of `chunks` chunks, `jobs` times. */
EXPORT void pool_count(struct pool *pool, int32_t *counts, int chunks, int jobs) {
    for (int i = 0; i < jobs; i++) pool_run(pool, count_chunk, counts, chunks);
}
