// Simulates a power loss for the files of one directory. A process loads it with LD_PRELOAD.
//
// Writes go through to the files, and this library keeps what they replace until a sync makes them
// durable. Syncs never reach the disk: only this library decides what is durable. At the chosen operation
// the process forks and dies. The fork then gives each sector, size and directory entry one of the values
// that it had since the last sync. It closes standard output last, so a reader at its end sees the result.
//
//   LOSE_POWER_DIR    the directory, absolute and without links; its subdirectories are ignored
//   LOSE_POWER_AT     the number of the operation at which the power is lost; 0 for never
//   LOSE_POWER_SEED   decides what is kept, undone and torn
//   LOSE_POWER_LIE    syncs of files and directories whose paths end with this have no effect
//
// It sees open, write, pwrite, writev, ftruncate, fallocate, mmap, fsync, fdatasync, unlink and rename. No
// other call may change the files. What it sees and does not simulate ends the process. `sync_file_range`
// makes nothing durable, so it passes. Files that end with `-shm` are mapped memory: a loss keeps them or
// fills them with noise.

#undef _FORTIFY_SOURCE
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

_Static_assert(sizeof(off_t) == 8 && sizeof(long) == 8, "only systems of 64 bits");

// What a sector or a size was before a change. The newest comes first.
struct past {
    struct past *older;
    uint64_t at;
    off_t size;
    unsigned char sector[];
};

struct file {
    struct file *next;
    dev_t device;
    ino_t inode;
    int fd; // Never closed: that would end the process's locks on the file.
    uint64_t name;
    bool is_index, lies;
    struct past **sectors;
    size_t n_sectors;
    struct past *sizes;
};

// A change of the directory. The newest comes first.
struct entry {
    struct entry *older;
    uint64_t at;
    char *from, *to; // Created: `to`. Removed: `from`. Renamed: both.
    ino_t inode;     // Of the file that `to` names.
    char *replaced;  // A link to the file that was removed or replaced.
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const char *directory, *lie;
static struct stat directory_stat;
static bool directory_lies;
static uint64_t now, lost_at, seed;
static size_t sector_size;
static struct file *_Atomic files;
static struct entry *entries;
static unsigned long n_kept, n_undone, n_torn, n_entries;

static void refuse(const char *what) {
    dprintf(2, "lose_power: %s\n", what);
    abort();
}

static void *allocated(void *old, size_t size) {
    void *memory = realloc(old, size);
    if (!memory) refuse("no memory");
    return memory;
}

static char *copied(const char *text) {
    return strcpy(allocated(NULL, strlen(text) + 1), text);
}

// --- chance ----------------------------------------------------------------------------------------

// The same seed, subject and place always give the same number.
static uint64_t drawn(uint64_t subject, uint64_t place) {
    uint64_t x = seed * 0x9e3779b97f4a7c15 ^ subject * 0xbf58476d1ce4e5b9 ^ (place + 1) * 0x94d049bb133111eb;
    for (int round = 0; round < 3; round++) {
        x ^= x >> 31;
        x *= 0x9fb21c651e98df25;
        x ^= x >> 28;
    }
    return x;
}

// How many of a hundred changes are kept: for some files none or all, for others most or half.
static uint64_t keeps(uint64_t subject) {
    static const uint64_t percent[] = {0, 50, 50, 90, 98, 100};
    return percent[drawn(subject, 1) % 6];
}

static uint64_t hashed(const char *text) {
    uint64_t hash = 0xcbf29ce484222325;
    while (*text) hash = (hash ^ (unsigned char)*text++) * 0x100000001b3;
    return hash;
}

// --- what is known of files ------------------------------------------------------------------------

static bool ends_with(const char *text, const char *end) {
    size_t n_text = strlen(text), n_end = strlen(end);
    return n_end && n_text >= n_end && !strcmp(text + n_text - n_end, end);
}

static bool is_inside(const char *path) {
    size_t n = directory ? strlen(directory) : 0;
    return n && !strncmp(path, directory, n) && path[n] == '/' && path[n + 1] && !strchr(path + n + 1, '/');
}

static struct file *found(const struct stat *stat) {
    struct file *file = files;
    while (file && (file->inode != stat->st_ino || file->device != stat->st_dev)) file = file->next;
    return file;
}

static struct file *file_of(int fd) {
    struct stat stat;
    return directory && !fstat(fd, &stat) && S_ISREG(stat.st_mode) ? found(&stat) : NULL;
}

static void watch(const char *path) {
    struct stat stat;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0 || fstat(fd, &stat)) refuse("can't open a file of the directory");
    if (found(&stat)) refuse("a file has been opened twice at once");
    struct file *file = allocated(NULL, sizeof *file);
    *file = (struct file){.next = files, .device = stat.st_dev, .inode = stat.st_ino, .fd = fd};
    file->name = hashed(path + strlen(directory));
    file->is_index = ends_with(path, "-shm");
    file->lies = ends_with(path, lie);
    files = file;
}

static off_t size_of(const struct file *file) {
    struct stat stat;
    if (fstat(file->fd, &stat)) refuse("can't ask for a size");
    return stat.st_size;
}

static struct past *past(struct past *older, size_t n_bytes) {
    struct past *past = allocated(NULL, sizeof *past + n_bytes);
    *past = (struct past){.older = older, .at = now};
    return past;
}

// Keeps what these bytes of a file are, before they change.
static void keep_bytes(struct file *file, off_t from, off_t to) {
    if (file->is_index || from >= to) return;
    size_t first = (size_t)from / sector_size, end = ((size_t)to + sector_size - 1) / sector_size;
    if (end > file->n_sectors) {
        size_t n = end > 2 * file->n_sectors ? end : 2 * file->n_sectors;
        file->sectors = allocated(file->sectors, n * sizeof *file->sectors);
        memset(file->sectors + file->n_sectors, 0, (n - file->n_sectors) * sizeof *file->sectors);
        file->n_sectors = n;
    }
    for (size_t i = first; i < end; i++) {
        struct past *was = file->sectors[i] = past(file->sectors[i], sector_size);
        memset(was->sector, 0, sector_size);
        if (pread(file->fd, was->sector, sector_size, (off_t)(i * sector_size)) < 0) refuse("can't read a sector");
    }
}

static void keep_size(struct file *file, off_t size) {
    if (file->is_index) return;
    file->sizes = past(file->sizes, 0);
    file->sizes->size = size;
}

static void before_write(struct file *file, off_t from, size_t n_bytes) {
    off_t size = size_of(file), end = from + (off_t)n_bytes;
    keep_bytes(file, from, end);
    if (end > size) keep_size(file, size);
}

static void before_resize(struct file *file, off_t to) {
    off_t size = size_of(file);
    if (to == size) return;
    keep_bytes(file, to, size);
    keep_size(file, size);
}

static ino_t inode_of(const char *path) {
    struct stat stat;
    return lstat(path, &stat) ? 0 : stat.st_ino;
}

static void changed_entry(const char *from, const char *to, char *replaced) {
    struct entry *entry = allocated(NULL, sizeof *entry);
    *entry = (struct entry){.older = entries, .at = now, .replaced = replaced};
    entry->from = from ? copied(from) : NULL;
    entry->to = to ? copied(to) : NULL;
    entry->inode = to ? inode_of(to) : 0;
    entries = entry;
}

// A link, beside the directory, to a file that is about to lose its name.
static char *saved(const char *path) {
    char link_path[PATH_MAX];
    snprintf(link_path, sizeof link_path, "%s.gone-%d-%lu", directory, getpid(), (unsigned long)now);
    if (!link(path, link_path)) return copied(link_path);
    if (errno != ENOENT) refuse("can't link a file");
    return NULL;
}

// --- what a sync makes durable ---------------------------------------------------------------------

static void forget_past(struct past **newest, uint64_t since) {
    while (*newest && (*newest)->at > since) newest = &(*newest)->older;
    while (*newest) {
        struct past *next = (*newest)->older;
        free(*newest);
        *newest = next;
    }
}

static void forget(struct file *file, uint64_t since) {
    for (size_t i = 0; i < file->n_sectors; i++) forget_past(&file->sectors[i], since);
    forget_past(&file->sizes, since);
}

static void forget_entries(uint64_t since) {
    struct entry **newest = &entries;
    while (*newest && (*newest)->at > since) newest = &(*newest)->older;
    *newest = NULL;
}

// --- the loss --------------------------------------------------------------------------------------

static const struct past *oldest(const struct past *past) {
    while (past->older) past = past->older;
    return past;
}

static const struct past *any(const struct past *past, uint64_t number) {
    uint64_t n = 0;
    for (const struct past *each = past; each; each = each->older) n++;
    for (number %= n; number; number--) past = past->older;
    return past;
}

static void put(const struct file *file, const unsigned char *bytes, off_t from, off_t size) {
    size_t n = size - from < (off_t)sector_size ? (size_t)(size - from) : sector_size;
    if (pwrite(file->fd, bytes, n, from) != (ssize_t)n) refuse("can't undo a write");
}

static void lose_sector(const struct file *file, size_t i, off_t size, uint64_t kept) {
    const struct past *past = file->sectors[i];
    off_t from = (off_t)(i * sector_size);
    if (!past || from >= size) return;
    uint64_t number = drawn(file->name, i + 16);
    if (number % 100 < kept) {
        n_kept++;
        return;
    }
    number /= 100;
    uint64_t fate = number % 4;
    number /= 4;
    if (fate) {
        n_undone++;
        put(file, (fate == 1 ? any(past, number) : oldest(past))->sector, from, size);
        return;
    }
    // Torn: the first or the last bytes are new. Real sectors of 512 bytes are not torn, so this is more.
    unsigned char torn[4096] = {0};
    n_torn++;
    if (pread(file->fd, torn, sector_size, from) < 0) refuse("can't read a sector");
    size_t cut = number / 2 % (sector_size + 1);
    if (number % 2)
        memcpy(torn, oldest(past)->sector, cut);
    else
        memcpy(torn + cut, oldest(past)->sector + cut, sector_size - cut);
    put(file, torn, from, size);
}

static void lose_index(const struct file *file) {
    off_t size = size_of(file);
    if (drawn(file->name, 2) % 2) return;
    for (off_t from = 0; from < size; from += 8) {
        uint64_t noise = drawn(file->name, (uint64_t)from + 16);
        if (pwrite(file->fd, &noise, sizeof noise, from) < 0) refuse("can't write noise");
    }
}

static void lose_changes(const struct file *file) {
    uint64_t kept = keeps(file->name), number = drawn(file->name, 3);
    off_t size = size_of(file);
    if (file->sizes && number % 100 >= kept) {
        number /= 100;
        size = (number % 2 ? oldest(file->sizes) : any(file->sizes, number / 2))->size;
        if (ftruncate(file->fd, size)) refuse("can't undo a size");
    }
    for (size_t i = 0; i < file->n_sectors; i++) lose_sector(file, i, size, kept);
}

// A later change of the same name can make this one final: then it stays.
static void lose_entry(const struct entry *entry) {
    if (entry->to && inode_of(entry->to) != entry->inode) return;
    if (entry->from && inode_of(entry->from)) return;
    n_entries++;
    int failed = 0;
    if (entry->from && entry->to)
        failed = rename(entry->to, entry->from);
    else if (entry->to)
        failed = unlink(entry->to);
    if (!failed && entry->replaced) failed = link(entry->replaced, entry->to ? entry->to : entry->from);
    if (failed) refuse("can't undo a change of the directory");
}

static void lose_power(void) {
    pid_t process = getpid();
    pid_t child = fork();
    if (child < 0) refuse("can't fork");
    if (child) {
        kill(process, SIGKILL);
        for (;;) pause();
    }
    while (getppid() == process) usleep(100);
    directory = NULL; // From here on, all calls pass.
    for (const struct file *file = files; file; file = file->next) {
        if (file->is_index)
            lose_index(file);
        else
            lose_changes(file);
    }
    uint64_t subject = hashed("entries"), n = 16;
    for (const struct entry *entry = entries; entry; entry = entry->older)
        if (drawn(subject, n++) % 100 >= keeps(subject)) lose_entry(entry);
    // Locks go with their descriptors, before the reader learns of the end.
    syscall(SYS_close_range, 3, ~0U, 0);
    dprintf(1, "\nlost %lu %lu %lu %lu\n", n_kept, n_undone, n_torn, n_entries);
    _exit(0);
}

// --- the calls -------------------------------------------------------------------------------------

__attribute__((constructor)) static void start(void) {
    const char *at = getenv("LOSE_POWER_AT"), *number = getenv("LOSE_POWER_SEED");
    const char *path = getenv("LOSE_POWER_DIR");
    if (!path) return;
    if (!at || !number || stat(path, &directory_stat)) refuse("LOSE_POWER_AT, _SEED or _DIR is wrong");
    lost_at = strtoull(at, NULL, 10);
    seed = strtoull(number, NULL, 10);
    sector_size = drawn(0, 0) % 2 ? 4096 : 512;
    lie = getenv("LOSE_POWER_LIE") ? getenv("LOSE_POWER_LIE") : "";
    directory_lies = ends_with(path, lie);
    directory = path;
}

// Counts an operation that is done. The caller holds the mutex.
static void count(void) {
    if (++now == lost_at) lose_power();
}

static int opened(int at, const char *path, int flags, mode_t mode) {
    if (!directory || !is_inside(path)) return (int)syscall(SYS_openat, at, path, flags, mode);
    if (flags & (O_APPEND | O_DIRECT | O_SYNC | O_DSYNC)) refuse("this way to open a file is not simulated");
    pthread_mutex_lock(&mutex);
    struct stat stat_before;
    bool existed = !lstat(path, &stat_before);
    if (existed && S_ISREG(stat_before.st_mode)) {
        if (!found(&stat_before)) watch(path);
        if (flags & O_TRUNC && !(flags & O_EXCL)) before_resize(found(&stat_before), 0);
    }
    int fd = (int)syscall(SYS_openat, at, path, flags, mode);
    int error = errno;
    if (fd >= 0 && !existed) {
        watch(path);
        changed_entry(NULL, path, NULL);
        count();
    }
    pthread_mutex_unlock(&mutex);
    errno = error;
    return fd;
}

static mode_t mode_of(int flags, va_list arguments) {
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

#define OPENED(at)                              \
    va_list arguments;                          \
    va_start(arguments, flags);                 \
    mode_t mode = mode_of(flags, arguments);    \
    va_end(arguments);                          \
    return opened(at, path, flags, mode)

int open(const char *path, int flags, ...) { OPENED(AT_FDCWD); }
int open64(const char *path, int flags, ...) { OPENED(AT_FDCWD); }
int openat(int at, const char *path, int flags, ...) { OPENED(at); }
int openat64(int at, const char *path, int flags, ...) { OPENED(at); }

// The file behind a descriptor, if it is one of ours. Then the caller has the mutex until `ended`.
static struct file *begun(int fd) {
    struct file *file = file_of(fd);
    if (file) pthread_mutex_lock(&mutex);
    return file;
}

static long ended(const struct file *file, long done) {
    int error = errno;
    if (file) {
        count();
        pthread_mutex_unlock(&mutex);
    }
    errno = error;
    return done;
}

ssize_t write(int fd, const void *bytes, size_t n) {
    struct file *file = begun(fd);
    if (file) before_write(file, lseek(fd, 0, SEEK_CUR), n);
    return ended(file, syscall(SYS_write, fd, bytes, n));
}

ssize_t writev(int fd, const struct iovec *parts, int n_parts) {
    struct file *file = begun(fd);
    size_t n = 0;
    for (int i = 0; i < n_parts; i++) n += parts[i].iov_len;
    if (file) before_write(file, lseek(fd, 0, SEEK_CUR), n);
    return ended(file, syscall(SYS_writev, fd, parts, n_parts));
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t offset) {
    struct file *file = begun(fd);
    if (file) before_write(file, offset, n);
    return ended(file, syscall(SYS_pwrite64, fd, bytes, n, offset));
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t offset) { return pwrite(fd, bytes, n, offset); }

int ftruncate(int fd, off_t size) {
    struct file *file = begun(fd);
    if (file) before_resize(file, size);
    return (int)ended(file, syscall(SYS_ftruncate, fd, size));
}

int ftruncate64(int fd, off64_t size) { return ftruncate(fd, size); }

int fallocate(int fd, int mode, off_t offset, off_t n) {
    struct file *file = begun(fd);
    if (file && mode) refuse("this mode of fallocate is not simulated");
    if (file && offset + n > size_of(file)) before_resize(file, offset + n);
    return (int)ended(file, syscall(SYS_fallocate, fd, mode, offset, n));
}

int fallocate64(int fd, int mode, off64_t offset, off64_t n) { return fallocate(fd, mode, offset, n); }
int posix_fallocate(int fd, off_t offset, off_t n) { return fallocate(fd, 0, offset, n) ? errno : 0; }
int posix_fallocate64(int fd, off64_t offset, off64_t n) { return posix_fallocate(fd, offset, n); }

// A sync takes time. What is written meanwhile may stay volatile.
static int synced(int fd, long number) {
    struct stat stat;
    bool is_known = directory && !fstat(fd, &stat);
    bool is_directory = is_known && stat.st_ino == directory_stat.st_ino && stat.st_dev == directory_stat.st_dev;
    pthread_mutex_lock(&mutex);
    struct file *file = is_known ? found(&stat) : NULL;
    uint64_t since = now;
    if (file || is_directory) count();
    pthread_mutex_unlock(&mutex);
    if (!file && !is_directory) return (int)syscall(number, fd);
    usleep((useconds_t)(drawn(since, 4) % 200));
    pthread_mutex_lock(&mutex);
    if (file && !file->lies) forget(file, since);
    if (is_directory && !directory_lies) forget_entries(since);
    count();
    pthread_mutex_unlock(&mutex);
    return 0;
}

int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }

int unlinkat(int at, const char *path, int flags) {
    if (!directory || !is_inside(path)) return (int)syscall(SYS_unlinkat, at, path, flags);
    pthread_mutex_lock(&mutex);
    char *replaced = saved(path);
    int done = (int)syscall(SYS_unlinkat, at, path, flags), error = errno;
    if (!done) {
        changed_entry(path, NULL, replaced);
        count();
    }
    pthread_mutex_unlock(&mutex);
    errno = error;
    return done;
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }

int rename(const char *from, const char *to) {
    bool leaves = directory && is_inside(from), arrives = directory && is_inside(to);
    if (!leaves && !arrives) return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    if (leaves != arrives) refuse("a rename into or out of the directory is not simulated");
    pthread_mutex_lock(&mutex);
    char *replaced = saved(to);
    int done = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0), error = errno;
    if (!done) {
        changed_entry(from, to, replaced);
        count();
    }
    pthread_mutex_unlock(&mutex);
    errno = error;
    return done;
}

void *mmap(void *at, size_t n, int access, int flags, int fd, off_t offset) {
    const struct file *file = flags & MAP_ANONYMOUS ? NULL : file_of(fd);
    bool is_write = access & PROT_WRITE && flags & MAP_SHARED;
    if (file && !file->is_index && is_write) refuse("writes to a mapped file are not simulated");
    return (void *)syscall(SYS_mmap, at, n, access, flags, fd, offset);
}

void *mmap64(void *at, size_t n, int access, int flags, int fd, off64_t offset) {
    return mmap(at, n, access, flags, fd, offset);
}
