/* SPDX-License-Identifier: Apache-2.0
 * Stands for VTune's collector: prints what it is told, and BAD for what jitprofiling.h of github.com/intel/ittapi does
 * not allow. */
#include <stdio.h>

struct line {
  unsigned offset, number;
};
struct method {
  unsigned id;
  const char* name;
  const void* address;
  unsigned size, num_lines;
  const struct line* lines;
  unsigned class_id;
  const char *class_file, *source_file;
};

unsigned Initialize(void) {
  puts("initialised");
  return 1; /* sampling is on */
}

unsigned NotifyEvent(unsigned event, void* data) {
  const struct method* method = data;
  unsigned last = 0;
  if (method->id == 0) puts("BAD: no number");
  if (event == 14) return printf("unload %u\n", method->id) > 0;
  if (event != 13) return puts("BAD: event") > 0;
  if (method->address == NULL || method->size == 0) puts("BAD: no code");
  for (unsigned i = 0; i < method->num_lines; ++i) {
    if (method->lines[i].offset <= last || method->lines[i].offset > method->size || method->lines[i].number == 0)
      puts("BAD: line");
    last = method->lines[i].offset;
  }
  printf("load %u %s of %s in %s, %u lines\n", method->id, method->name, method->class_file, method->source_file,
         method->num_lines);
  return 1;
}
