/* SPDX-License-Identifier: Apache-2.0 */
/* A collector of VTune's that says that it was loaded. */
#include <stdio.h>

__attribute__((constructor)) static void Loaded(void) { puts("collector loaded"); }

unsigned Initialize(void) { return 0; }
int NotifyEvent(unsigned event, void* data) { return event != 0 && data != NULL; }
