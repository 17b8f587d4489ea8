/* The files of GTKWave's fstapi, which looks at no result of a write, and reads back by mapping what it believes it wrote:
   fstapi.c is compiled with these in place of the C library's functions.

   Its main file is a file, and a write that failed is remembered until it is asked for. All others that it writes (names, a
   value a signal, times of the block under way: a few bytes a signal) are in memory, so that a full disk cannot end the process
   in the middle of a look at one; where even they fall short, what is not there reads as zeros. C, because fstapi is. */
#pragma once

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

FILE* rdusim_fst_open(const char* path, const char* mode);
FILE* rdusim_fst_temporary(void);
size_t rdusim_fst_write(const void* from, size_t size, size_t count, FILE* file);
int rdusim_fst_flush(FILE* file);
void* rdusim_fst_map(void* at, size_t bytes, int protection, int flags, int fd, long offset);
int rdusim_fst_close(FILE* file);

/* Bytes of the main file at `path`, with those that were not handed to the system yet. */
unsigned long long rdusim_fst_size(const char* path);

/* What first went wrong with what was written at `path`, as errno has it; 0 for nothing. Forgets it. */
int rdusim_fst_error(const char* path);

#ifdef __cplusplus
}
#endif
