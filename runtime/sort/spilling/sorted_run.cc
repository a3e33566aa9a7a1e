// SPDX-License-Identifier: Apache-2.0
// Several threads merge the same runs where each has its own range of keys. Samples of all runs say which leads divide
// the rows evenly, and within which rows of a run such a lead stands; a binary search there finds the exact row, so
// that the position of each range in the result is known before a row of it is merged:
//
//     run 0   leads of rows 0, 2048, ..   10  17  25  31  44           rows below 30: 6,201
//     run 1                               12  13  28  39               rows below 30: 4,977      range 1 begins with
//     dividing leads                              |30                                            row 11,178
//
// Leads leave out what comes behind a string of more than 16 bytes, so that rows of one lead are never divided.
#include "runtime/sort/spilling/sorted_run.h"

#include <algorithm>
#include <cstring>

#include "runtime/abi/sort_abi.h"
#include "runtime/base/refused_calls.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

// Of which one is sampled, at least: those of a block, or fewer.
constexpr uint64_t kFewestOfSample = 16, kMostOfSample = 1024;

// The keys whose values may not fit their words.
uint32_t KeysWithTails(const QuernSortDescriptor& sort) {
  uint32_t keys = 0;
  for (uint32_t p = 0; p < sort.num_parts; ++p)
    if (sort.parts[p].kind == kBytesPart) keys |= 1u << sort.parts[p].key;
  return keys;
}

}  // namespace

RowLeads::RowLeads(std::shared_ptr<const SortDescriptor> descriptor, const QuernSortEntryPoints& generic)
    : descriptor_(std::move(descriptor)), generic_(generic) {
  for (const KeyComparison& step : StepsOf(*descriptor_->get(), KeysWithTails(*descriptor_->get()))) {
    if (step.is_tail()) break;
    steps_.push_back(step);
  }
}

absl::Status RowLeads::Read(const BatchView& rows, uint64_t row, uint64_t* lead) const {
  uint64_t words[kMaxSortWords] = {};
  uint64_t* to[kMaxSortWords];
  for (uint32_t w = 0; w < descriptor_->get()->num_words; ++w) to[w] = &words[w];
  uint32_t incomplete = 0;
  const RefusedCalls refused;
  generic_.encode(descriptor_->get(), rows.keys.data(), row, nullptr, 1, to, &incomplete);
  QUERN_RETURN_IF_ERROR(refused.status());
  for (size_t s = 0; s < steps_.size(); ++s) lead[s] = words[steps_[s].word] & steps_[s].mask;
  return absl::OkStatus();
}

bool RowLeads::Precedes(const uint64_t* a, const uint64_t* b) const {
  return std::lexicographical_compare(a, a + steps_.size(), b, b + steps_.size());
}

uint64_t SortedRun::most_block_bytes() const {
  uint64_t most = 0;
  for (const SpilledBlock& block : rows.blocks()) most = std::max(most, block.num_bytes);
  return most;
}

// ---- writing --------------------------------------------------------------------------------------------------------

RunWriter::RunWriter(const std::shared_ptr<SpillContext>& context, const std::vector<ColumnType>& types,
                     const RowLeads* leads)
    : leads_(leads),
      rows_of_sample_(std::clamp(context->block_bytes() / std::max<uint64_t>(RowBytesOf(types), 1), kFewestOfSample,
                                 kMostOfSample)),
      writer_(context, types) {}

absl::Status RunWriter::Append(const OutputBatch& rows) {
  if (rows.num_rows() == 0) return absl::OkStatus();
  if (run_.sampled_rows.empty() || num_rows_ - run_.sampled_rows.back() >= rows_of_sample_) {
    run_.sampled_rows.push_back(num_rows_);
    run_.leads.resize(run_.leads.size() + leads_->num_words());
    QUERN_RETURN_IF_ERROR(leads_->Read(ViewOf(rows), 0, run_.leads.data() + run_.leads.size() - leads_->num_words()));
  }
  num_rows_ += rows.num_rows();
  return writer_.Append(rows);
}

absl::StatusOr<SortedRun> RunWriter::Finish(uint64_t level) {
  QUERN_ASSIGN_OR_RETURN(run_.rows, writer_.Finish());
  run_.level = level;
  return std::move(run_);
}

// ---- dividing -------------------------------------------------------------------------------------------------------

std::vector<uint64_t> DividingLeads(const std::vector<SortedRun>& runs, const RowLeads& leads, uint64_t num_parts) {
  struct Sample {
    const uint64_t* lead;
    uint64_t num_rows;  // twice those that count for it: half of those to the samples before and behind it
  };
  std::vector<Sample> samples;
  uint64_t num_rows = 0;
  for (const SortedRun& run : runs) {
    for (size_t i = 0; i < run.sampled_rows.size(); ++i) {
      const uint64_t begin = i == 0 ? 0 : run.sampled_rows[i - 1];
      const uint64_t end = i + 1 < run.sampled_rows.size() ? run.sampled_rows[i + 1] : run.rows.num_rows();
      samples.push_back({run.leads.data() + i * leads.num_words(), end - begin});
    }
    num_rows += 2 * run.rows.num_rows();
  }
  std::sort(samples.begin(), samples.end(),
            [&](const Sample& a, const Sample& b) { return leads.Precedes(a.lead, b.lead); });
  std::vector<uint64_t> dividing;
  const uint64_t* last = samples.empty() ? nullptr : samples.front().lead;
  uint64_t rows_before = 0, next_part = 1;
  for (const Sample& sample : samples) {
    if (rows_before * num_parts >= next_part * num_rows && leads.Precedes(last, sample.lead)) {
      last = sample.lead;
      dividing.insert(dividing.end(), last, last + leads.num_words());
      next_part = rows_before * num_parts / num_rows + 1;
    }
    rows_before += sample.num_rows;
  }
  return dividing;
}

namespace {

// The number of the first row of a batch whose lead is not below the given one.
absl::StatusOr<uint64_t> FirstRowIn(const BatchView& rows, const uint64_t* from, const RowLeads& leads) {
  std::vector<uint64_t> lead(leads.num_words());
  uint64_t low = 0, high = rows.num_rows;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    QUERN_RETURN_IF_ERROR(leads.Read(rows, middle, lead.data()));
    if (leads.Precedes(lead.data(), from)) low = middle + 1;
    else high = middle;
  }
  return low;
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> FirstRowsFrom(const std::vector<uint64_t>& dividing_leads, const RowLeads& leads,
                                                    SortedRun* run, const std::vector<ColumnType>& types,
                                                    const std::shared_ptr<SpillContext>& context) {
  std::vector<uint64_t> first_rows;
  const std::shared_ptr<SpilledRows> rows(std::shared_ptr<void>(), &run->rows);  // which stay the run's
  const size_t num_words = leads.num_words();
  size_t sample = 0;  // the first one whose lead is not below
  for (const uint64_t* from = dividing_leads.data(); from != dividing_leads.data() + dividing_leads.size();
       from += num_words) {
    while (sample < run->sampled_rows.size() && leads.Precedes(run->leads.data() + sample * num_words, from)) ++sample;
    if (sample == 0) {
      first_rows.push_back(0);
      continue;
    }
    const uint64_t end = sample == run->sampled_rows.size() ? run->rows.num_rows() : run->sampled_rows[sample];
    uint64_t row = run->sampled_rows[sample - 1] + 1;
    RowReader reader(context, types, rows, RowPart{row, end});
    for (BatchView batch; row < end;) {
      QUERN_ASSIGN_OR_RETURN(const bool has_rows, reader.Next(&batch));
      if (!has_rows) break;
      QUERN_ASSIGN_OR_RETURN(const uint64_t below, FirstRowIn(batch, from, leads));
      row += below;
      if (below < batch.num_rows) break;
    }
    first_rows.push_back(row);
  }
  return first_rows;
}

}  // namespace quern
