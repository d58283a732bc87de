/* Counts the calls that change files below a folder and lets one of them fail: LD_PRELOADed, armed by arm().
 *
 * At the chosen call the process is killed (a write is done by half first), or every later call that would make a file
 * grow fails with an errno, as a full, broken or read-only disk answers. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

static char root[PATH_MAX];
static atomic_long calls;
static long chosen;
static int error_number; /* 0: kill */

static void trap_raw_renames(void);

void arm(const char *folder, long at, int error) {
    atomic_store(&calls, 0);
    chosen = at;
    error_number = error;
    strncpy(root, folder, sizeof root - 1);
    trap_raw_renames();
}

long counted(void) { return atomic_load(&calls); }

static int below(const char *path) {
    return root[0] && path && strncmp(path, root, strlen(root)) == 0;
}

static int open_below(int descriptor) {
    char link[64], path[PATH_MAX];
    if (!root[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return below(path);
}

/* 0: go on; 1: this is the call to die at; -1: it fails, errno is set */
static int turn(void) {
    long number = atomic_fetch_add(&calls, 1) + 1;
    if (!chosen || number < chosen) return 0;
    if (!error_number) return number == chosen;
    errno = error_number;
    return -1;
}

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define GUARD(is_below)                                                                                                \
    if (is_below) {                                                                                                    \
        int now = turn();                                                                                              \
        if (now == 1) die();                                                                                           \
        if (now == -1) return -1;                                                                                      \
    }

#define WRITE(name, parameters, half, whole)                                                                           \
    ssize_t name parameters {                                                                                          \
        if (open_below(fd)) {                                                                                          \
            int now = turn();                                                                                          \
            if (now == 1) {                                                                                            \
                half;                                                                                                  \
                die();                                                                                                 \
            }                                                                                                          \
            if (now == -1) return -1;                                                                                  \
        }                                                                                                              \
        return whole;                                                                                                  \
    }

WRITE(write, (int fd, const void *data, size_t size), (void)!NEXT(write)(fd, data, size / 2), NEXT(write)(fd, data, size))
WRITE(pwrite, (int fd, const void *data, size_t size, off_t at), (void)!NEXT(pwrite)(fd, data, size / 2, at),
      NEXT(pwrite)(fd, data, size, at))
WRITE(pwrite64, (int fd, const void *data, size_t size, off64_t at), (void)!NEXT(pwrite64)(fd, data, size / 2, at),
      NEXT(pwrite64)(fd, data, size, at))
WRITE(writev, (int fd, const struct iovec *parts, int count), (void)!NEXT(writev)(fd, parts, count / 2),
      NEXT(writev)(fd, parts, count))
WRITE(copy_file_range, (int from, off64_t *from_at, int fd, off64_t *at, size_t size, unsigned int flags),
      (void)!NEXT(copy_file_range)(from, from_at, fd, at, size / 2, flags),
      NEXT(copy_file_range)(from, from_at, fd, at, size, flags))

int fsync(int fd) {
    GUARD(open_below(fd))
    return NEXT(fsync)(fd);
}
int fdatasync(int fd) {
    GUARD(open_below(fd))
    return NEXT(fdatasync)(fd);
}
int ftruncate(int fd, off_t size) {
    GUARD(open_below(fd))
    return NEXT(ftruncate)(fd, size);
}
int ftruncate64(int fd, off64_t size) {
    GUARD(open_below(fd))
    return NEXT(ftruncate64)(fd, size);
}
int rename(const char *from, const char *to) {
    GUARD(below(to))
    return NEXT(rename)(from, to);
}
int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    GUARD(below(to))
    return NEXT(renameat)(from_folder, from, to_folder, to);
}
int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned int flags) {
    GUARD(below(to))
    return NEXT(renameat2)(from_folder, from, to_folder, to, flags);
}
int link(const char *from, const char *to) {
    GUARD(below(to))
    return NEXT(link)(from, to);
}
int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    GUARD(below(to))
    return NEXT(linkat)(from_folder, from, to_folder, to, flags);
}
int unlink(const char *path) {
    if (below(path) && !error_number) GUARD(1)
    return NEXT(unlink)(path);
}
int unlinkat(int folder, const char *path, int flags) {
    if (below(path) && !error_number) GUARD(1)
    return NEXT(unlinkat)(folder, path, flags);
}
int mkdir(const char *path, mode_t mode) {
    GUARD(below(path))
    return NEXT(mkdir)(path, mode);
}
int mkdirat(int folder, const char *path, mode_t mode) {
    GUARD(below(path))
    return NEXT(mkdirat)(folder, path, mode);
}

static int mode_of(int flags, va_list rest) {
    return flags & O_CREAT ? va_arg(rest, int) : 0;
}

#define OPEN(name)                                                                                                     \
    int name(const char *path, int flags, ...) {                                                                       \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        int mode = mode_of(flags, rest);                                                                               \
        va_end(rest);                                                                                                  \
        GUARD((flags & O_CREAT) && below(path))                                                                        \
        return NEXT(name)(path, flags, mode);                                                                          \
    }

OPEN(open)
OPEN(open64)

int openat(int folder, const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int mode = mode_of(flags, rest);
    va_end(rest);
    GUARD((flags & O_CREAT) && below(path))
    return NEXT(openat)(folder, path, flags, mode);
}

/* Rust's tempfile renames without libc: seccomp makes a signal of each such call. */
#ifdef __x86_64__
#define RESULT(context) (context)->uc_mcontext.gregs[REG_RAX]
#define ARGUMENT_1(context) (context)->uc_mcontext.gregs[REG_RSI]
#define ARGUMENT_0(context) (context)->uc_mcontext.gregs[REG_RDI]
#define ARGUMENT_2(context) (context)->uc_mcontext.gregs[REG_RDX]
#define ARGUMENT_3(context) (context)->uc_mcontext.gregs[REG_R10]
#else
#define RESULT(context) (context)->uc_mcontext.regs[0]
#define ARGUMENT_0(context) (context)->uc_mcontext.regs[0]
#define ARGUMENT_1(context) (context)->uc_mcontext.regs[1]
#define ARGUMENT_2(context) (context)->uc_mcontext.regs[2]
#define ARGUMENT_3(context) (context)->uc_mcontext.regs[3]
#endif

static void on_raw_rename(int signal, siginfo_t *information, void *opaque) {
    (void)signal, (void)information;
    ucontext_t *context = opaque;
    const char *from = (const char *)ARGUMENT_1(context), *to = (const char *)ARGUMENT_3(context);
    int now = below(to) ? turn() : 0;
    if (now == 1) die();
    long result = now == -1 ? -1 : syscall(SYS_renameat2, ARGUMENT_0(context), from, ARGUMENT_2(context), to, 0);
    RESULT(context) = result == -1 ? -errno : result;
}

static void trap_raw_renames(void) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof rules / sizeof rules[0], .filter = rules};
    struct sigaction action = {.sa_sigaction = on_raw_rename, .sa_flags = SA_SIGINFO | SA_NODEFER};
    if (sigaction(SIGSYS, &action, NULL) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        perror("shim");
        abort();
    }
}
