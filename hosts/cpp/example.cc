// SPDX-License-Identifier: Apache-2.0
// The least that a host in C++ does: two tables of its own, joined on one key; the result names rows of both.
#include <cstdio>
#include <string>
#include <vector>

#include "quern_v1.hpp"

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
  if (quern::Status status = join->Append(BatchOf(countries, row_ids, country_code.size())); !status.ok())
    return status;
  if (quern::Status status = join->Finalise(); !status.ok()) return status;

  auto prober = quern::Prober::Create(*join);
  if (!prober.ok()) return prober.status();
  if (quern::Status status = prober->Input(BatchOf(cities, row_ids, city_country.size())); !status.ok()) return status;
  for (bool more = true; more;) {
    quern::Result<quern::Rows> rows = prober->Next();
    if (!rows.ok()) return rows.status();
    const auto* city = static_cast<const uint64_t*>(rows->result.columns[0].values);
    const auto* country = static_cast<const uint64_t*>(rows->result.columns[1].values);
    for (uint64_t i = 0; i < rows->result.num_rows; ++i) {
      std::printf("%s: %s\n", city_name[city[i]].c_str(), country_name[country[i]].c_str());
    }
    more = rows->more;
  }
  return {};
}

}  // namespace

int main() {
  const quern::Status status = PrintCities();
  if (!status.ok()) std::fprintf(stderr, "error: %s\n", status.text().c_str());
  return status.ok() ? 0 : 1;
}
