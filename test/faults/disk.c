/*
 * Preloaded into a program of a test: a disk below one directory that keeps only synced bytes, fails syncs or turns read-only.
 *
 * ORCH_FAULT_ROOT     directory that is meant; paths outside of it are left alone
 * ORCH_FAULT_CONTROL  file whose first byte is the fault of the moment: 0 none, 'e' EIO from fsync, 'r' EROFS from every change
 * ORCH_FAULT_IMAGES   directory for what is durable: the image of each file at its last sync, by inode, and `names`, a log of
 *                     "F inode mode path" (a synced file) and "D path" with its "E inode mode name" lines (a synced directory)
 *
 * A sync of a new file makes its name durable too, as ext4 does; a rename or removal is durable when its directory is synced.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static const char *root, *images;
static volatile char *control;
static size_t root_length;

#define REAL(name) (real_##name ? real_##name : (real_##name = dlsym(RTLD_NEXT, #name)))
static int (*real_fsync)(int), (*real_fdatasync)(int), (*real_rename)(const char *, const char *);
static int (*real_unlink)(const char *), (*real_mkdir)(const char *, mode_t), (*real_ftruncate64)(int, off64_t);
static int (*real_open)(const char *, int, ...), (*real_open64)(const char *, int, ...);
static ssize_t (*real_write)(int, const void *, size_t), (*real_pwrite64)(int, const void *, size_t, off64_t);
static ssize_t (*real_writev)(int, const struct iovec *, int), (*real_pwritev64)(int, const struct iovec *, int, off64_t);

__attribute__((constructor)) static void begin(void) {
  root = getenv("ORCH_FAULT_ROOT");
  images = getenv("ORCH_FAULT_IMAGES");
  const char *path = getenv("ORCH_FAULT_CONTROL");
  if (!root || !path) { root = NULL; return; }
  root_length = strlen(root);
  int fd = REAL(open)(path, O_RDONLY | O_CLOEXEC);
  void *page = fd < 0 ? MAP_FAILED : mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);
  if (page != MAP_FAILED) control = page;
  if (fd >= 0) close(fd);
}

static int is_below(const char *path) {
  return root && strncmp(path, root, root_length) == 0 && (path[root_length] == '/' || path[root_length] == 0);
}

static int path_of(int fd, char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, PATH_MAX - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return is_below(path);
}

/* A path may begin with a directory's descriptor, /proc/self/fd/N/name. */
static int names_below(const char *path) {
  char real[PATH_MAX];
  if (strncmp(path, "/proc/self/fd/", 14) == 0) return path_of(atoi(path + 14), real);
  return is_below(path);
}

static int is_read_only(int below) {
  if (!control || *control != 'r' || !below) return 0;
  errno = EROFS;
  return 1;
}

static int fd_read_only(int fd) {
  char path[PATH_MAX];
  return control && *control == 'r' && is_read_only(path_of(fd, path));
}

static void note(const char *text, size_t length) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/names", images);
  int fd = REAL(open)(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || REAL(write)(fd, text, length) != (ssize_t)length) abort();
  close(fd);
}

static void keep_file(int fd, const struct stat *info, const char *path) {
  char temporary[PATH_MAX], image[PATH_MAX], block[1 << 16];
  snprintf(temporary, sizeof temporary, "%s/%d-%d.part", images, getpid(), gettid());
  snprintf(image, sizeof image, "%s/%lu", images, (unsigned long)info->st_ino);
  int out = REAL(open)(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  char own[64];
  snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
  int in = REAL(open)(own, O_RDONLY | O_CLOEXEC);
  if (out < 0 || in < 0) abort();
  for (ssize_t got; (got = read(in, block, sizeof block)) > 0;)
    if (REAL(write)(out, block, got) != got) abort();
  close(in);
  close(out);
  REAL(rename)(temporary, image);
  char line[PATH_MAX + 64];
  note(line, snprintf(line, sizeof line, "F %lu %o %s\n", (unsigned long)info->st_ino, info->st_mode & 07777, path));
}

static void keep_directory(const char *path) {
  DIR *directory = opendir(path);
  if (!directory) return;
  size_t size = 1 << 20, used = snprintf(NULL, 0, "D %s\n", path);
  char *text = malloc(size);
  sprintf(text, "D %s\n", path);
  for (struct dirent *entry; (entry = readdir(directory)) && used < size - PATH_MAX;) {
    struct stat info;
    if (fstatat(dirfd(directory), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) continue;
    used += sprintf(text + used, "E %lu %o %s\n", (unsigned long)info.st_ino, info.st_mode & 07777, entry->d_name);
  }
  closedir(directory);
  note(text, used);
  free(text);
}

static int sync_with(int fd, int (*real)(int)) {
  char path[PATH_MAX];
  if (!root || !path_of(fd, path)) return real(fd);
  if (control && *control == 'e') { errno = EIO; return -1; }
  int result = real(fd), error = errno;
  struct stat info;
  if (result == 0 && images && fstat(fd, &info) == 0) {
    if (S_ISDIR(info.st_mode)) keep_directory(path);
    else if (S_ISREG(info.st_mode) && info.st_nlink > 0) keep_file(fd, &info, path);
  }
  errno = error;
  return result;
}

int fsync(int fd) { return sync_with(fd, REAL(fsync)); }
int fdatasync(int fd) { return sync_with(fd, REAL(fdatasync)); }
int rename(const char *from, const char *to) { return is_read_only(names_below(to)) ? -1 : REAL(rename)(from, to); }
int unlink(const char *path) { return is_read_only(names_below(path)) ? -1 : REAL(unlink)(path); }
int mkdir(const char *path, mode_t mode) { return is_read_only(names_below(path)) ? -1 : REAL(mkdir)(path, mode); }
int ftruncate64(int fd, off64_t length) { return fd_read_only(fd) ? -1 : REAL(ftruncate64)(fd, length); }
ssize_t write(int fd, const void *bytes, size_t n) { return fd_read_only(fd) ? -1 : REAL(write)(fd, bytes, n); }
ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at) { return fd_read_only(fd) ? -1 : REAL(pwrite64)(fd, bytes, n, at); }
ssize_t writev(int fd, const struct iovec *v, int n) { return fd_read_only(fd) ? -1 : REAL(writev)(fd, v, n); }
ssize_t pwritev64(int fd, const struct iovec *v, int n, off64_t at) { return fd_read_only(fd) ? -1 : REAL(pwritev64)(fd, v, n, at); }

static mode_t mode_of(int flags, va_list rest) { return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; }
#define OPEN(name)                                                                                   \
  int name(const char *path, int flags, ...) {                                                       \
    va_list rest;                                                                                    \
    va_start(rest, flags);                                                                           \
    mode_t mode = mode_of(flags, rest);                                                              \
    va_end(rest);                                                                                    \
    if ((flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) && is_read_only(names_below(path))) return -1; \
    return REAL(name)(path, flags, mode);                                                            \
  }
OPEN(open)
OPEN(open64)
