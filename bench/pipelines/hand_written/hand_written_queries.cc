// SPDX-License-Identifier: Apache-2.0
// The library of the loops, for bench/pipelines/query_engines.py: one function of C, which ctypes can call. Tables come
// and results go by the Arrow C data interface, so that these loops read the very buffers that Quern reads.
//
// What the loops know is what a good engineer knows who writes them for these queries: types, the order of joins, and
// that a batch should be looked at before 64 bits are taken for granted. What they do not know is the data: an array
// that is indexed by a key is made where the range of the keys allows it, which is found out at run time.
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "bench/pipelines/hand_written/arrow_tables.h"
#include "bench/pipelines/hand_written/queries.h"

namespace {

using quern::bench::ArrowTable;

struct NamedQuery {
  std::string_view name;
  std::string (*run)(quern::bench::TableReader*, unsigned, quern::bench::ResultTable*);
};

constexpr NamedQuery kQueries[] = {{"tpch.1", quern::bench::Query1},
                                   {"tpch.3", quern::bench::Query3},
                                   {"tpch.6", quern::bench::Query6},
                                   {"tpch.9", quern::bench::Query9}};

}  // namespace

extern "C" {

__attribute__((visibility("default"))) const char* quern_hand_written_run(const char* query, const ArrowTable* tables,
                                                                          size_t num_tables, unsigned num_threads,
                                                                          ArrowArray* array, ArrowSchema* schema);

// Runs the query that `query` names over tables of one batch each. Returns null, and the result in `array` and
// `schema`; or an error, which is valid until this thread calls again. The tables stay the caller's.
const char* quern_hand_written_run(const char* query, const ArrowTable* tables, size_t num_tables, unsigned num_threads,
                                   ArrowArray* array, ArrowSchema* schema) {
  static thread_local std::string error;
  for (const NamedQuery& known : kQueries) {
    if (known.name != query) continue;
    quern::bench::TableReader reader(std::span(tables, num_tables));
    quern::bench::ResultTable result;
    error = known.run(&reader, num_threads, &result);
    if (!error.empty()) return error.c_str();
    std::move(result).Export(array, schema);
    return nullptr;
  }
  error = std::string("no such query: ") + query + "; accepted: tpch.1, tpch.3, tpch.6, tpch.9";
  return error.c_str();
}

}  // extern "C"
