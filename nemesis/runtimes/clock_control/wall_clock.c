/* The wall clock of one node, moved and made to drift while its programs run.
 *
 * Preloaded (LD_PRELOAD) into every process of the node, this library answers the calls that read the wall clock:
 * clock_gettime and timespec_get for it, gettimeofday, time. To true time it adds what the node's control page says: a
 * file, named by NEMESIS_WALL_CLOCK, that is mapped here and written by the harness. All other clocks, the monotonic
 * one above all, are passed through, so timers, time-outs and the times of traces do not move.
 *
 * The page holds two settings and says whose turn it is. The writer fills in the other one, then changes the turn, by
 * one byte, which no machine writes in halves. A reader whose setting was in turn before and after it was copied has a
 * whole one; it never waits for a writer, not even for one that died in the middle. (Linux: seqcount_latch.)
 *
 * Within one setting the clock never goes back, as long as true time does not: a drift is greater than -1. A new
 * setting may take it back. Without a page, or with one that is too short, the clock is right.
 *
 * Not reached: static programs, programs that ask the kernel by themselves (raw system calls, the vDSO past the C
 * library), times that the kernel writes (of files), and waits until a given wall-clock time, which the kernel ends by
 * the true clock.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)

/* nemesis/runtimes/clock_control/control_page.py writes the same layout. */
struct setting {
    _Atomic int64_t since_ns;  /* true time, since 1970 */
    _Atomic int64_t offset_ns; /* ahead of true time, at since_ns */
    _Atomic int64_t drift_ppb; /* nanoseconds gained in each second from then on */
};
struct page {
    _Atomic uint8_t turn;
    struct setting settings[2];
};
_Static_assert(sizeof(struct page) == 56 && offsetof(struct page, settings) == 8, "as the harness writes it");

static const struct page *page;
static int (*next_clock_gettime)(clockid_t, struct timespec *);
static int (*next_timespec_get)(struct timespec *, int);

__attribute__((constructor)) static void begin(void) {
    next_clock_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    next_timespec_get = (int (*)(struct timespec *, int))dlsym(RTLD_NEXT, "timespec_get");
    const char *path = getenv("NEMESIS_WALL_CLOCK");
    int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    if (lseek(file, 0, SEEK_END) >= (off_t)sizeof(struct page)) {
        void *mapped = mmap(NULL, sizeof(struct page), PROT_READ, MAP_SHARED, file, 0);
        if (mapped != MAP_FAILED)
            page = mapped;
    }
    close(file);
}

/* What the kernel says, also before this library's beginning: others may begin, and ask, first. */
static int true_clock_gettime(clockid_t clock, struct timespec *now) {
    if (next_clock_gettime != NULL)
        return next_clock_gettime(clock, now);
    return (int)syscall(SYS_clock_gettime, clock, now);
}

/* How far this node's wall clock is ahead of true time, at that time. Nothing else is asked, so that what is told grows
 * with true time, whatever happens between one instruction and the next. */
static int64_t ahead_ns(int64_t now_ns) {
    int64_t since_ns, offset_ns, drift_ppb;
    uint8_t turn;
    if (page == NULL)
        return 0;
    do {
        turn = atomic_load_explicit(&page->turn, memory_order_acquire);
        const struct setting *setting = &page->settings[turn & 1];
        since_ns = atomic_load_explicit(&setting->since_ns, memory_order_relaxed);
        offset_ns = atomic_load_explicit(&setting->offset_ns, memory_order_relaxed);
        drift_ppb = atomic_load_explicit(&setting->drift_ppb, memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
    } while (atomic_load_explicit(&page->turn, memory_order_relaxed) != turn);
    return offset_ns + (int64_t)((double)(now_ns - since_ns) * (double)drift_ppb / 1e9);
}

static void move(struct timespec *time) {
    int64_t moved_ns = time->tv_sec * NS_PER_S + time->tv_nsec;
    moved_ns += ahead_ns(moved_ns);
    time->tv_sec = moved_ns / NS_PER_S;
    time->tv_nsec = moved_ns % NS_PER_S;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = true_clock_gettime(clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        move(now);
    return result;
}

int timespec_get(struct timespec *now, int base) {
    if (base != TIME_UTC)
        return next_timespec_get == NULL ? 0 : next_timespec_get(now, base);
    return clock_gettime(CLOCK_REALTIME, now) == 0 ? base : 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    if (zone != NULL)
        *(struct timezone *)zone = (struct timezone){0};
    int result = clock_gettime(CLOCK_REALTIME, &exact);
    if (result == 0)
        *now = (struct timeval){.tv_sec = exact.tv_sec, .tv_usec = exact.tv_nsec / 1000};
    return result;
}

time_t time(time_t *now) {
    struct timespec exact;
    if (clock_gettime(CLOCK_REALTIME, &exact) != 0)
        return -1;
    if (now != NULL)
        *now = exact.tv_sec;
    return exact.tv_sec;
}
