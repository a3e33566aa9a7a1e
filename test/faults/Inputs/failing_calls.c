// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD in which system calls on files fail. Of all calls of one kind on files below one folder, the
// n-th fails, or the n-th and all after it:
//
//     QUERN_FAULT=write:28:3:/tmp/x        the third write fails with errno 28 (ENOSPC)
//     QUERN_FAULT=write:28:3+:/tmp/x       so does each write after it: the disk stays full
//     QUERN_FAULT=write:short:3:/tmp/x     the third write takes one byte; "zero": none
//     QUERN_FAULT=read:wrong:3:/tmp/x      the third read (pread) has another byte than the file
//     QUERN_FAULT=write:stop:3:/tmp/x      the process stops (SIGSTOP) before the third write, which then succeeds
//
// A read by io_uring counts as a read. One that fails has EBADF, whatever the number.
//
// A file that was created when the call failed, QUERN_FAULT_HIT, tells the test that there was such a call. A close
// that fails closes the file all the same, as Linux does. What is below the folder is found by the name of the open
// file (/proc/self/fd), so that libraries and the interpreter are left alone.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum Outcome { kFails, kShort, kZero, kWrong, kStop };

static char kind[16], folder[PATH_MAX], hit[PATH_MAX];
static enum Outcome outcome;
static int error_number, is_lasting;
static long wanted;
static atomic_long calls;

__attribute__((constructor)) static void Read(void) {
  char what[16], when[16];
  const char* text = getenv("QUERN_FAULT");
  if (text == NULL || sscanf(text, "%15[^:]:%15[^:]:%15[^:]:%4095[^\n]", kind, what, when, folder) != 4) return;
  static const char* const kOutcomes[] = {"", "short", "zero", "wrong", "stop"};
  for (int i = kShort; i <= kStop; ++i)
    if (strcmp(what, kOutcomes[i]) == 0) outcome = (enum Outcome)i;
  error_number = atoi(what);
  is_lasting = strchr(when, '+') != NULL;
  const char* path = getenv("QUERN_FAULT_HIT");
  snprintf(hit, sizeof hit, "%s", path == NULL ? "" : path);
  unsetenv("LD_PRELOAD");  // the calls of programs that this one runs are theirs
  wanted = atol(when);
}

static int IsBelow(const char* path) {
  const size_t length = strlen(folder);
  return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

// The name of an open file or folder, "" where it has none.
static void NameOf(int descriptor, char* name) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t n = readlink(link, name, PATH_MAX - 1);
  name[n < 0 ? 0 : n] = '\0';
}

static int IsDescriptorBelow(int descriptor) {
  char name[PATH_MAX];
  NameOf(descriptor, name);
  return IsBelow(name);
}

static int IsNameBelow(int at, const char* path) {
  char name[PATH_MAX];
  if (path[0] == '/') return IsBelow(path);
  if (at == AT_FDCWD) return getcwd(name, sizeof name) != NULL && IsBelow(name);
  return IsDescriptorBelow(at);
}

// True for a call that is to fail; is_chosen is 0 for a call on another file.
static int Fails(const char* name, int is_chosen) {
  if (wanted == 0 || strcmp(name, kind) != 0 || !is_chosen) return 0;
  const long number = atomic_fetch_add(&calls, 1) + 1;
  if (number != wanted && !(is_lasting && number > wanted)) return 0;
  if (hit[0] != '\0') syscall(SYS_close, (int)syscall(SYS_openat, AT_FDCWD, hit, O_CREAT | O_WRONLY, 0600));
  if (outcome == kStop) {
    raise(SIGSTOP);  // in this thread, which stops before it goes on
    return 0;
  }
  errno = error_number;
  return 1;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int Open(int at, const char* path, int flags, mode_t mode) {
  if (wanted != 0 && Fails("open", IsNameBelow(at, path))) return -1;
  return (int)syscall(SYS_openat, at, path, flags, mode);
}

// The mode is there where a file may be made; O_TMPFILE is several bits, one of which is O_DIRECTORY.
#define MODE(flags)                                                     \
  mode_t mode = 0;                                                      \
  if (((flags) & O_CREAT) != 0 || ((flags) & O_TMPFILE) == O_TMPFILE) { \
    va_list more;                                                       \
    va_start(more, flags);                                              \
    mode = va_arg(more, mode_t);                                        \
    va_end(more);                                                       \
  }

int open(const char* path, int flags, ...) {
  MODE(flags)
  return Open(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  MODE(flags)
  return Open(AT_FDCWD, path, flags, mode);
}
int openat(int at, const char* path, int flags, ...) {
  MODE(flags)
  return Open(at, path, flags, mode);
}
int openat64(int at, const char* path, int flags, ...) {
  MODE(flags)
  return Open(at, path, flags, mode);
}

ssize_t write(int descriptor, const void* bytes, size_t size) {
  if (wanted != 0 && Fails("write", IsDescriptorBelow(descriptor))) {
    if (outcome == kFails) return -1;
    size = outcome == kShort && size > 0;
    if (size == 0) return 0;
  }
  return syscall(SYS_write, descriptor, bytes, size);
}

// Of a file's pieces; a short write has the first byte.
ssize_t pwritev(int descriptor, const struct iovec* pieces, int num_pieces, off_t offset) {
  struct iovec first = num_pieces > 0 ? pieces[0] : (struct iovec){NULL, 0};
  if (wanted != 0 && Fails("write", IsDescriptorBelow(descriptor))) {
    if (outcome == kFails) return -1;
    first.iov_len = outcome == kShort && first.iov_len > 0;
    if (first.iov_len == 0) return 0;
    pieces = &first;
    num_pieces = 1;
  }
  return syscall(SYS_pwritev, descriptor, pieces, num_pieces, (long)offset, 0L);
}
ssize_t pwritev64(int descriptor, const struct iovec* pieces, int num_pieces, off64_t offset) {
  return pwritev(descriptor, pieces, num_pieces, offset);
}

int fallocate(int descriptor, int mode, off_t offset, off_t bytes) {
  if (wanted != 0 && Fails("fallocate", IsDescriptorBelow(descriptor))) return -1;
  return (int)syscall(SYS_fallocate, descriptor, mode, offset, bytes);
}
int fallocate64(int descriptor, int mode, off64_t offset, off64_t bytes) {
  return fallocate(descriptor, mode, offset, bytes);
}

int close(int descriptor) {
  const int fails = wanted != 0 && Fails("close", IsDescriptorBelow(descriptor));
  const int result = (int)syscall(SYS_close, descriptor);
  if (fails) errno = error_number;
  return fails ? -1 : result;
}

int rename(const char* from, const char* to) {
  if (wanted != 0 && Fails("rename", IsNameBelow(AT_FDCWD, from))) return -1;
  return (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
}
int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  if (wanted != 0 && Fails("rename", IsNameBelow(from_folder, from))) return -1;
  return (int)syscall(SYS_renameat, from_folder, from, to_folder, to);
}

int mkdir(const char* path, mode_t mode) {
  if (wanted != 0 && Fails("mkdir", IsNameBelow(AT_FDCWD, path))) return -1;
  return NEXT(mkdir)(path, mode);
}

int ftruncate(int descriptor, off_t bytes) {
  if (wanted != 0 && Fails("ftruncate", IsDescriptorBelow(descriptor))) return -1;
  return NEXT(ftruncate)(descriptor, bytes);
}
int ftruncate64(int descriptor, off64_t bytes) { return ftruncate(descriptor, bytes); }

int fsync(int descriptor) {
  if (wanted != 0 && Fails("fsync", IsDescriptorBelow(descriptor))) return -1;
  return NEXT(fsync)(descriptor);
}

int fchmod(int descriptor, mode_t mode) {
  if (wanted != 0 && Fails("fchmod", IsDescriptorBelow(descriptor))) return -1;
  return NEXT(fchmod)(descriptor, mode);
}

// ---- io_uring -------------------------------------------------------------------------------------------------------
// The program has no functions of libc for it, but calls `syscall`. An entry that asks for a read lies in memory that
// it shares with the kernel; it is found by the mappings that the program makes, and altered before the kernel sees it.

enum { kMaxRings = 1024 };  // by the number of the descriptor
static struct Ring {
  _Atomic(char*) queues;
  _Atomic(struct io_uring_sqe*) entries;
  struct io_sqring_offsets at;
} rings[kMaxRings];

static void KeepRing(int descriptor, off_t offset, void* mapped) {
  if (descriptor >= kMaxRings || mapped == MAP_FAILED) return;
  if (offset == (off_t)IORING_OFF_SQ_RING) rings[descriptor].queues = mapped;
  if (offset == (off_t)IORING_OFF_SQES) rings[descriptor].entries = mapped;
}

// Of files alone: memory that is refused is the subject of test/refusals.
void* mmap(void* at, size_t bytes, int protection, int flags, int descriptor, off_t offset) {
  if (wanted != 0 && descriptor >= 0 && Fails("mmap", IsDescriptorBelow(descriptor))) return MAP_FAILED;
  void* const mapped = (void*)syscall(SYS_mmap, at, bytes, protection, flags, descriptor, offset);
  if (wanted != 0 && descriptor >= 0) KeepRing(descriptor, offset, mapped);
  return mapped;
}
void* mmap64(void* at, size_t bytes, int protection, int flags, int descriptor, off64_t offset) {
  return mmap(at, bytes, protection, flags, descriptor, offset);
}

static ssize_t ReadSome(int descriptor, size_t* size, int* is_wrong) {
  *is_wrong = 0;
  if (wanted == 0 || !Fails("read", IsDescriptorBelow(descriptor))) return 0;
  if (outcome == kFails) return -1;
  *is_wrong = outcome == kWrong;
  if (outcome == kShort) *size = *size > 0;
  if (outcome == kZero) *size = 0;
  return 0;
}
ssize_t read(int descriptor, void* bytes, size_t size) {
  int is_wrong;
  return ReadSome(descriptor, &size, &is_wrong) < 0 ? -1 : syscall(SYS_read, descriptor, bytes, size);
}
ssize_t pread(int descriptor, void* bytes, size_t size, off_t offset) {
  int is_wrong;
  if (ReadSome(descriptor, &size, &is_wrong) < 0) return -1;
  const ssize_t n = syscall(SYS_pread64, descriptor, bytes, size, offset);
  if (is_wrong && n > 0) ((unsigned char*)bytes)[n / 2] ^= 1;
  return n;
}
ssize_t pread64(int descriptor, void* bytes, size_t size, off64_t offset) {
  return pread(descriptor, bytes, size, offset);
}

static void FailRingRead(struct io_uring_sqe* entry) {
  if (entry->opcode != IORING_OP_READ || !Fails("read", IsDescriptorBelow(entry->fd))) return;
  if (outcome == kFails) entry->fd = -1;
  if (outcome == kWrong) entry->off += 1;
  if (outcome == kShort) entry->len = entry->len > 0;
  if (outcome == kZero) entry->len = 0;
}

long syscall(long number, ...) {
  static _Atomic(__typeof__(&syscall)) next;
  if (next == NULL) next = NEXT(syscall);
  va_list more;
  va_start(more, number);
  long a[6];
  for (int i = 0; i < 6; ++i) a[i] = va_arg(more, long);
  va_end(more);
  if (wanted != 0 && number == SYS_io_uring_enter && (uint32_t)a[1] > 0 && a[0] < kMaxRings) {
    const struct Ring* ring = &rings[a[0]];
    const uint32_t tail = *(const uint32_t*)(ring->queues + ring->at.tail);
    const uint32_t mask = *(const uint32_t*)(ring->queues + ring->at.ring_mask);
    const uint32_t* const places = (const uint32_t*)(ring->queues + ring->at.array);
    for (uint32_t i = tail - (uint32_t)a[1]; i != tail; ++i) FailRingRead(&ring->entries[places[i & mask]]);
  }
  const long result = next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  if (number == SYS_io_uring_setup && result >= 0 && result < kMaxRings)
    rings[result].at = ((const struct io_uring_params*)a[1])->sq_off;
  return result;
}
