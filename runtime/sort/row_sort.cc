// SPDX-License-Identifier: Apache-2.0
// The stages of a sort. Each thread appends to its own thread-local rows (local_rows.h); finalising sorts the rows of
// all threads (sorted_rows.h); readers take turns to read the sorted rows:
//
//     Append   -> LocalRows -+
//     Appender -> LocalRows -+->  SortedRows  <- SortReader, SortReader, ..
//     Appender -> LocalRows -+
//
// Rows can only be read once they are sorted. A limit ends what readers see.
#include "runtime/sort/row_sort.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/base/refused_calls.h"
#include "runtime/base/status.h"
#include "runtime/blocks/blocks.h"
#include "runtime/rows/job_observer.h"
#include "runtime/rows/row_layout.h"
#include "runtime/sort/local_rows.h"
#include "runtime/sort/sort_columns.h"
#include "runtime/sort/sorted_rows.h"
#include "runtime/sort/spilling/spilled_sort.h"
#include "runtime/sort/spilling/spilling_rows.h"

namespace quern {
namespace {

constexpr SinkTexts kSortTexts = {"rows", "the rows are sorted", "rows are missing from the sort", "a new sort"};

LocalRows* RowsOf(LocalState* local, bool spills) {
  return spills ? static_cast<SpillingRows*>(local)->rows() : static_cast<LocalRows*>(local);
}

// The spec whose result is only the keys of a sort.
SortSpec KeysOnly(const SortSpec& spec) {
  SortSpec keys = spec;
  keys.payload.clear();
  keys.window.clear();
  keys.partition = 0;
  for (KeySpec& key : keys.keys) key.out = true;
  return keys;
}

// Makes a tuple of `to` from one of `from`: copies the fields of the keys that both have. The rest of it is zero.
std::vector<uint8_t> KeyTuple(const QuernSortDescriptor& to, const QuernSortDescriptor& from,
                              const std::vector<uint8_t>& tuple) {
  std::vector<uint8_t> keys(to.rows.tuple_bytes);
  for (uint32_t k = 0; k < to.num_keys; ++k) {
    if (to.keys[k].field == kNoField || from.keys[k].field == kNoField) continue;
    const QuernField &field = *SortFieldOf(&to, &to.keys[k]), &source = *SortFieldOf(&from, &from.keys[k]);
    std::memcpy(keys.data() + field.tuple_offset, tuple.data() + source.tuple_offset, FieldBytes(field));
    if (field.null_mask != 0 && (tuple[source.null_offset] & source.null_mask) != 0)
      keys[field.null_offset] |= field.null_mask;
  }
  return keys;
}

// The tuple of the one row of `keys`, for a descriptor whose fields are all keys.
std::vector<uint8_t> StoreKeys(const SortDescriptor& descriptor, const QuernSortEntryPoints& generic,
                               const BatchView& keys) {
  std::vector<uint8_t> tuple(descriptor.get()->rows.tuple_bytes);
  std::vector<QuernColumn> fields;
  for (const SortFieldSource& source : descriptor.fields()) fields.push_back(keys.keys[source.index]);
  if (descriptor.has_tuples())
    generic.store(&descriptor.get()->rows, fields.data(), 0, keys.selection, 1, 0, tuple.data());
  return tuple;
}

// Copies the key bytes to which a tuple points to their own memory.
absl::StatusOr<std::shared_ptr<const void>> OwnStrings(const QuernSortDescriptor& descriptor,
                                                       const std::shared_ptr<MemoryBudget>& budget,
                                                       std::vector<uint8_t>* tuple) {
  const auto bytes = std::make_shared<Arena>(budget, false);
  for (uint32_t k = 0; k < descriptor.num_keys; ++k) {
    if (descriptor.keys[k].field == kNoField || !IsVariable(descriptor.keys[k].storage)) continue;
    const QuernField& field = *SortFieldOf(&descriptor, &descriptor.keys[k]);
    auto ref = blocks::Load<StringRef>(tuple->data() + field.tuple_offset);
    const bool is_null = field.null_mask != 0 && ((*tuple)[field.null_offset] & field.null_mask) != 0;
    if (is_null || ref.length <= kInlineStringBytes) continue;
    QUERN_ASSIGN_OR_RETURN(uint8_t* copy, bytes->Allocate(ref.length));
    std::memcpy(copy, ref.bytes, ref.length);
    ref.bytes = reinterpret_cast<const char*>(copy);
    blocks::Store(tuple->data() + field.tuple_offset, ref);
  }
  return bytes;
}

}  // namespace

RowSort::RowSort(std::shared_ptr<const SortDescriptor> descriptor, SortEntrySource entry_points,
                 const QuernSortEntryPoints& generic, std::shared_ptr<const void> code,
                 std::shared_ptr<MemoryBudget> budget, const SortOptions& options)
    : Sink(kSortTexts, entry_points.NewCounters(), std::move(budget)),
      descriptor_(std::move(descriptor)),
      entry_points_(std::move(entry_points)),
      generic_(generic),
      code_(std::move(code)),
      options_(options),
      threshold_(std::make_shared<SortThreshold>(descriptor_)) {}

RowSort::~RowSort() {
  EndJob([this](JobSummary* job) {
    job->table_bytes = stats_.stored_bytes;
    job->collided_rows = stats_.collided_rows;
    job->ns = counters().ns;
    job->layout = stats_.method;
  });
}

// ---- appending -----------------------------------------------------------------------------------------------------

bool RowSort::keeps_strings() const { return !KeepsTop(*descriptor_, options_); }
SortContext RowSort::Context() const { return {descriptor_, entry_points_, budget_, options_, threshold_, counters_}; }

// Window functions are computed of rows in memory, and comparison sorts are for tests.
bool RowSort::CanSpill() const {
  const SortSpec& spec = descriptor_->spec();
  return spill_ != nullptr && spec.window.empty() && !KeepsTop(*descriptor_, options_) &&
         descriptor_->method() == SortMethod::kRadix && spec.keys.size() + (spec.stable ? 1 : 0) <= kMaxKeys;
}

std::unique_ptr<LocalState> RowSort::NewLocalState() {
  if (!CanSpill()) return std::make_unique<LocalRows>(Context());
  const std::lock_guard<std::mutex> lock(mutex_);
  if (spilled_ == nullptr) spilled_ = std::make_shared<SpilledSort>(Context(), generic_, spill_, stop_flag());
  return std::make_unique<SpillingRows>(spilled_);
}

absl::Status RowSort::CheckInput(const BatchView& batch, RowKind /*kind*/) const {
  return CheckBatch(batch, descriptor_->spec().keys.size(), descriptor_->spec().payload.size());
}

void RowSort::SetPrefetch(PrefetchLoop loop, const PrefetchSetting& setting) {
  options_.prefetch.Set(loop, setting);
  if (rows_ != nullptr) rows_->SetPrefetch(loop, setting);
}

// ---- thresholds -----------------------------------------------------------------------------------------------------

absl::StatusOr<bool> RowSort::GetThreshold(OutputBatch* out) const {
  QUERN_RETURN_IF_ERROR(CheckOutput(*out, descriptor_->spec().keys.size(), NoColumns::kRefused));
  QUERN_RETURN_IF_ERROR(out->Reset());
  const std::shared_ptr<const SortBound> bound = threshold_->Get();
  if (bound == nullptr || (bound->tuple.empty() && descriptor_->get()->rows.tuple_bytes != 0)) return false;
  const auto keys = std::make_shared<const SortDescriptor>(KeysOnly(descriptor_->spec()));
  const std::vector<uint8_t> tuple = KeyTuple(*keys->get(), *descriptor_->get(), bound->tuple);
  const auto address = reinterpret_cast<uint64_t>(tuple.data());
  std::vector<const uint64_t*> words;
  for (const uint64_t& word : bound->words) words.push_back(&word);
  SortedBlock block;
  block.n = 1;
  block.words = words.data();
  block.tuples = &address;
  SortColumnWriter writer(keys, generic_);
  QUERN_RETURN_IF_ERROR(writer.Append(block, out).status());
  return true;
}

absl::Status RowSort::SetThreshold(const BatchView& keys) {
  if (descriptor_->spec().limit == 0)
    return InvalidArgument("threshold of a sort without limit: " + PrintSpec(descriptor_->spec()) +
                           "; accepted: limit=N");
  if (keys.num_rows != 1)
    return InvalidArgument("rows of a threshold: " + std::to_string(keys.num_rows) + "; accepted: 1");
  QUERN_RETURN_IF_ERROR(CheckBatch(keys, descriptor_->spec().keys.size(), 0));
  auto bound = std::make_shared<SortBound>();
  bound->words.resize(descriptor_->get()->num_words);
  std::vector<uint64_t*> words;
  for (uint64_t& word : bound->words) words.push_back(&word);
  uint32_t incomplete = 0;
  const RefusedCalls refused;
  entry_points_.Now().encode(descriptor_->get(), keys.keys.data(), 0, keys.selection, 1, words.data(), &incomplete);
  QUERN_RETURN_IF_ERROR(refused.status());
  bound->incomplete = incomplete;
  if (descriptor_->has_tuples()) {
    const SortDescriptor with_keys(KeysOnly(descriptor_->spec()), descriptor_->method());
    bound->tuple = KeyTuple(*descriptor_->get(), *with_keys.get(), StoreKeys(with_keys, generic_, keys));
    QUERN_ASSIGN_OR_RETURN(bound->memory, OwnStrings(*descriptor_->get(), budget_, &bound->tuple));
  }
  threshold_->Lower(std::move(bound));
  return absl::OkStatus();
}

// ---- sorting --------------------------------------------------------------------------------------------------------

// Dictionary codes, and rows without tuples, are only possible if all local states have them.
absl::Status RowSort::UnifyLocalStates() {
  std::vector<LocalRows*> locals;
  for (const auto& local : *local_states()) locals.push_back(RowsOf(local.get(), spilled_ != nullptr));
  for (LocalRows* local : locals) QUERN_RETURN_IF_ERROR(local->RepairWords());
  for (uint32_t k = 0; k < descriptor_->get()->num_keys; ++k) {
    const auto has_bytes = [k](const LocalRows* local) { return local->num_rows() != 0 && !local->HasDictionary(k); };
    if (std::none_of(locals.begin(), locals.end(), has_bytes)) continue;
    for (LocalRows* local : locals)
      if (local->HasDictionary(k)) QUERN_RETURN_IF_ERROR(local->Uncode(k));
  }
  const auto needs_tuples = [](const LocalRows* local) { return local->num_rows() != 0 && local->NeedsTuples(); };
  if (std::any_of(locals.begin(), locals.end(), needs_tuples))
    for (LocalRows* local : locals) QUERN_RETURN_IF_ERROR(local->RestoreTuples());
  return absl::OkStatus();
}

// Rows that are still in memory join those that have left.
absl::StatusOr<SharedWork*> RowSort::BeginRead(const std::vector<SpillingRows*>& locals) {
  has_spilled_ = true;
  stats_.input_rows = 0;
  for (const SpillingRows* const local : locals) stats_.input_rows += local->num_input_rows();
  return spilled_->BeginRead(locals);
}

absl::StatusOr<SharedWork*> RowSort::BeginFinalise() {
  if (spilled_ != nullptr) {
    std::vector<SpillingRows*> locals;
    for (const auto& local : *local_states()) locals.push_back(static_cast<SpillingRows*>(local.get()));
    if (spilled_->HasToSpill(locals)) return BeginRead(locals);
  }
  QUERN_RETURN_IF_ERROR(UnifyLocalStates());
  SortInput input;
  for (const auto& local : *local_states()) {
    auto* const rows = RowsOf(local.get(), spilled_ != nullptr);
    rows->AddTo(&input);
    stats_.input_rows += rows->num_input_rows();
    stats_.dropped_rows += rows->num_input_rows() - rows->num_rows();
  }
  rows_ = std::make_unique<SortedRows>(Context(), std::move(input), /*needs_rows=*/false);
  return rows_->work();
}

void RowSort::EndFinalise() {
  const uint64_t limit = descriptor_->spec().limit;
  if (has_spilled_) {
    stats_.num_rows = spilled_->result()->num_rows();
    stats_.method = spilled_->method();
    stats_.prefetch_class = "off";
    return;
  }
  if (spill_ != nullptr) spill_->EndSettingAside();  // results have the room
  stats_.num_rows = limit == 0 ? rows_->num_rows() : std::min(rows_->num_rows(), limit);
  stats_.entry_bytes = rows_->entry_bytes();
  stats_.key_bits = rows_->key_bits();
  stats_.collided_rows = rows_->collided_rows();
  stats_.method = rows_->method();
  stats_.stored_bytes = rows_->stored_bytes();
  stats_.prefetch_class = options_.prefetches ? "group" : "off";
}

// ---- reading --------------------------------------------------------------------------------------------------------

struct SortReader::State : OnOwnLines {
  explicit State(const RowSort& sort) : writer(sort.descriptor_, sort.entry_points_), counters(sort.counters_) {}
  SortColumnWriter writer;
  SortedRows::BlockBuffers buffers;
  CounterBlock counters;
  uint64_t next = 0;  // rows that this reader took and has not yet returned
  uint64_t end = 0;
  RangesInTurn::Held spilled;
};

SortReader::SortReader(std::shared_ptr<RowSort> sort)
    : sort_(std::move(sort)), state_(std::make_unique<State>(*sort_)) {}
SortReader::~SortReader() {
  if (state_->spilled.rows != nullptr) sort_->spilled_->result()->GiveBack(std::move(state_->spilled));
}

absl::StatusOr<bool> SortReader::Next(OutputBatch* out) {
  const CallTimer timer(&state_->counters);
  if (!sort_->is_finalised())
    return absl::FailedPreconditionError("read before finalise: the rows are not sorted; accepted: finalise first");
  QUERN_RETURN_IF_ERROR(CheckOutput(*out, sort_->descriptor_->columns().size()));
  QUERN_RETURN_IF_ERROR(out->Reset());
  if (sort_->has_spilled_) return sort_->spilled_->result()->Next(&state_->spilled, out, &position_);
  const uint64_t num_rows = sort_->stats_.num_rows;
  const bool counts = out->num_columns() == 0;
  if (state_->next == state_->end) {
    const uint64_t taken = counts ? num_rows : out->capacity();
    state_->next = std::min(sort_->next_position_.fetch_add(taken, std::memory_order_relaxed), num_rows);
    state_->end = std::min(state_->next + taken, num_rows);
  }
  position_ = state_->next;
  if (counts) {
    out->set_num_rows(state_->end - std::exchange(state_->next, state_->end));
    return false;
  }
  while (state_->next < state_->end && out->num_rows() < out->capacity()) {
    const uint64_t room = std::min(state_->end - state_->next, out->capacity() - out->num_rows());
    const auto n = static_cast<uint32_t>(std::min<uint64_t>(room, sort_->rows_->block_rows()));
    QUERN_ASSIGN_OR_RETURN(const uint32_t written,
                           state_->writer.Append(sort_->rows_->Read(state_->next, n, &state_->buffers), out));
    state_->next += written;
    if (written < n) break;
  }
  return state_->next < state_->end || sort_->next_position_.load(std::memory_order_relaxed) < num_rows;
}

}  // namespace quern
