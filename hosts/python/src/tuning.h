// SPDX-License-Identifier: Apache-2.0
// Tuning profiles and machine facts as Python objects.
#ifndef QUERN_HOSTS_PYTHON_SRC_TUNING_H_
#define QUERN_HOSTS_PYTHON_SRC_TUNING_H_

#include <nanobind/nanobind.h>

#include <memory>

#include "codegen/machine/profile.h"
#include "codegen/tuning/tuner.h"

namespace quern::python {

// *Threads*: any; it never changes.
struct PyProfile {
  std::shared_ptr<const Profile> profile;
  std::shared_ptr<const TuningResult> tuning;  // what it came out of; null where it was read
};

// Adds the class Profile, and the functions that get and set the process's profile.
void DefineProfiles(nanobind::module_* module);
// Adds measure_machine and tune.
void DefineTuning(nanobind::module_* module);

}  // namespace quern::python

#endif  // QUERN_HOSTS_PYTHON_SRC_TUNING_H_
