// SPDX-License-Identifier: Apache-2.0
// The least that a host in C++ does: two tables of its own, joined on one key; the result names rows of both.
#include <cstdio>
#include <string>
#include <vector>

#include "quern.hpp"

namespace {

quern_batch BatchOf(const quern_column& key, const quern_column& row_ids, size_t num_rows) {
  quern_batch batch = {};
  batch.keys = &key;
  batch.payload = &row_ids;
  batch.num_rows = num_rows;
  return batch;
}

// Prints "city: country" for each city whose country is known.
quern::Status PrintCities() {
  const std::vector<int32_t> country_code = {33, 49, 81};
  const std::vector<std::string> country_name = {"France", "Germany", "Japan"};
  const std::vector<int32_t> city_country = {81, 49, 33, 1, 81};
  const std::vector<std::string> city_name = {"Kyoto", "Jena", "Lyon", "Boston", "Nara"};

  auto kernel = quern::Kernel::Compile("join.inner keys=i32 build=rowid probe=rowid");
  if (!kernel.ok()) return kernel.status();
  auto join = quern::Join::Create(*kernel);
  if (!join.ok()) return join.status();
  const quern_column row_ids = {};
  quern_column countries = {}, cities = {};
  countries.values = country_code.data();
  cities.values = city_country.data();
  auto build = join->Build();
  if (!build.ok()) return build.status();
  if (quern::Status status = build->Append(BatchOf(countries, row_ids, country_code.size())); !status.ok())
    return status;
  if (quern::Status status = build->Finish(); !status.ok()) return status;
  if (quern::Status status = join->Finalise(); !status.ok()) return status;

  auto probe = join->Probe();
  if (!probe.ok()) return probe.status();
  if (quern::Status status = probe->Push(BatchOf(cities, row_ids, city_country.size())); !status.ok()) return status;
  while (true) {
    auto next = probe->Next();
    if (!next.ok()) return next.status();
    const quern_result& rows = **next;
    const auto* city = static_cast<const uint64_t*>(rows.columns[0].values);
    const auto* country = static_cast<const uint64_t*>(rows.columns[1].values);
    for (uint64_t i = 0; i < rows.num_rows; ++i)
      std::printf("%s: %s\n", city_name[city[i]].c_str(), country_name[country[i]].c_str());
    if (rows.state != QUERN_RESULT_MORE) return {};
  }
}

}  // namespace

int main() {
  const quern::Status status = PrintCities();
  if (!status.ok()) std::fprintf(stderr, "error: %s\n", status.text().c_str());
  return status.ok() ? 0 : 1;
}
