/* Included before fstapi.c: fst_files.h says why. */
#include <sys/mman.h>

#include "fst_files.h"
#define fopen rdusim_fst_open
#define tmpfile rdusim_fst_temporary
#define fwrite rdusim_fst_write
#define fflush rdusim_fst_flush
#define fclose rdusim_fst_close
#define mmap rdusim_fst_map
