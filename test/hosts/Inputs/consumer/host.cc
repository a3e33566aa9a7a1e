// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdio>
#include <quern.hpp>

int main() {
  const int64_t keys[] = {7, 8};
  quern_column key = {};
  key.values = keys;
  quern_batch batch = {};
  batch.keys = &key;
  batch.num_rows = 2;
  auto kernel = quern::Kernel::Compile("join.inner keys=i64", quern::Engine::kGeneric);
  if (!kernel.ok()) return 1;
  auto join = quern::Join::Create(*kernel);
  if (!join.ok()) return 1;
  auto build = join->Build();
  if (!build.ok() || !build->Append(batch).ok() || !build->Finish().ok() || !join->Finalise().ok()) return 1;
  auto probe = join->Probe();
  batch.num_rows = 1;
  if (!probe.ok() || !probe->Push(batch).ok()) return 1;
  auto rows = probe->Next();
  if (!rows.ok()) return 1;
  std::printf("%llu result rows\n", static_cast<unsigned long long>((*rows)->num_rows));
  return 0;
}
