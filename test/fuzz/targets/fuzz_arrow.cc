// SPDX-License-Identifier: Apache-2.0
// Arrow structs from fuzz input. Example: the bytes 03 00 for a column of utf8 and then 02 01 .. give a struct array of
// two rows from row 1 on, whose child has offsets for three rows and exactly so many bytes of text. The C data
// interface does not give the sizes of most buffers. So a length beyond a buffer, or a last offset beyond the text,
// cannot be detected, and is not tried: offsets rise or fall by small steps, and the text reaches to the highest.
#include "test/fuzz/targets/fuzz_arrow.h"

#include <iterator>

namespace quern::fuzz {
namespace {

constexpr const char* kFormats[] = {"b",   "c",   "C",   "s",   "S",    "i",   "I",  "l",      "L",
                                    "f",   "g",   "u",   "U",   "z",    "Z",   "vu", "vz",     "w:5",
                                    "tdD", "tdm", "tts", "ttu", "tsu:", "tDn", "e",  "d:10,2", "tsn:UTC"};
constexpr const char* kIndices[] = {"", "", "", "", "c", "C", "s", "S", "i", "I", "l", "L"};

// Bytes of a value of fixed width; 0 for others.
size_t WidthOf(const std::string& format) {
  switch (format[0]) {
    case 'c':
    case 'C': return 1;
    case 's':
    case 'S':
    case 'e': return 2;
    case 'i':
    case 'I':
    case 'f': return 4;
    case 'l':
    case 'L':
    case 'g': return 8;
    case 'd': return 16;
    case 'w': return static_cast<size_t>(std::atoi(format.c_str() + 2));
    case 't': return format == "tdD" || format == "tts" || format == "ttm" ? 4 : 8;
    default: return 0;
  }
}

void ReleaseNothing(ArrowSchema* schema) { schema->release = nullptr; }
void ReleaseChild(ArrowArray* array) { array->release = nullptr; }

size_t BytesOfBits(int64_t bits) { return static_cast<size_t>((bits + 7) / 8); }

// Lies about numbers of the structs: none of them promises more than there is.
constexpr int64_t kNegative[] = {-1, -2, INT32_MIN, INT64_MIN};

}  // namespace

ArrowColumn ReadColumn(Input* in) {
  ArrowColumn column;
  column.format = kFormats[in->Below(std::size(kFormats))];
  column.index = kIndices[in->Below(std::size(kIndices))];
  return column;
}

// ---- schemas ----

FuzzSchema::FuzzSchema(const std::vector<ArrowColumn>& columns) {
  Add("+s", "");
  for (size_t i = 0; i < columns.size(); ++i) {
    const bool is_dictionary = !columns[i].index.empty();
    const size_t node = Add(is_dictionary ? columns[i].index : columns[i].format, std::string(1, "abcd"[i]));
    if (is_dictionary) nodes_[node]->schema.dictionary = &nodes_[Add(columns[i].format, "")]->schema;
    first_.push_back(node);
    nodes_[0]->children.push_back(&nodes_[node]->schema);
  }
  ArrowSchema& top = nodes_[0]->schema;
  top.children = nodes_[0]->children.data();
  top.n_children = static_cast<int64_t>(columns.size());
}

size_t FuzzSchema::Add(const std::string& format, const std::string& name) {
  nodes_.push_back(std::make_unique<Node>());
  Node& node = *nodes_.back();
  node.format = format;
  node.name = name;
  node.schema.format = node.format.c_str();
  node.schema.name = node.name.c_str();
  node.schema.flags = ARROW_FLAG_NULLABLE;
  node.schema.release = ReleaseNothing;
  return nodes_.size() - 1;
}

void FuzzSchema::Break(Input* in) {
  Node& node = *nodes_[in->Below(static_cast<uint32_t>(nodes_.size()))];
  ArrowSchema& schema = node.schema;
  switch (in->Below(7)) {
    case 0: schema.format = nullptr; break;
    case 1: schema.name = nullptr; break;
    case 2: schema.n_children = kNegative[in->Below(std::size(kNegative))]; break;
    case 3: schema.n_children = std::max<int64_t>(0, schema.n_children - 1); break;
    case 4: schema.dictionary = nullptr; break;
    case 5:
      if (!node.children.empty()) node.children[in->Below(static_cast<uint32_t>(node.children.size()))] = nullptr;
      break;
    default:
      node.format.resize(in->Below(12));
      in->Fill(node.format.data(), node.format.size());
      schema.format = node.format.c_str();
  }
}

// ---- arrays ----

FuzzArray::FuzzArray(const std::vector<ArrowColumn>& columns, Input* in) {
  const auto num_rows = static_cast<int64_t>(in->Below(41));
  const auto offset = static_cast<int64_t>(in->Below(4));
  Node* const top = AddNode(num_rows, offset, {nullptr});
  top->array.null_count = 0;
  top->children = std::make_unique<ArrowArray*[]>(columns.size());
  top->array.children = top->children.get();
  top->array.n_children = static_cast<int64_t>(columns.size());
  for (size_t i = 0; i < columns.size(); ++i)
    top->children[i] = &AddColumn(columns[i], offset + num_rows + in->Below(2), in)->array;
  top->array.private_data = &times_released_;
  top->array.release = [](ArrowArray* array) {
    ++*static_cast<int*>(array->private_data);
    array->release = nullptr;
  };
}

FuzzArray::~FuzzArray() {
  if (get()->release != nullptr) get()->release(get());
}

FuzzArray::Node* FuzzArray::AddNode(int64_t length, int64_t offset, const std::vector<const void*>& buffers) {
  nodes_.push_back(std::make_unique<Node>());
  Node* const node = nodes_.back().get();
  node->buffers = std::make_unique<const void*[]>(buffers.size());
  std::copy(buffers.begin(), buffers.end(), node->buffers.get());
  node->array = {.length = length,
                 .null_count = -1,
                 .offset = offset,
                 .n_buffers = static_cast<int64_t>(buffers.size()),
                 .n_children = 0,
                 .buffers = node->buffers.get(),
                 .children = nullptr,
                 .dictionary = nullptr,
                 .release = ReleaseChild,
                 .private_data = nullptr};
  return node;
}

FuzzArray::Node* FuzzArray::AddColumn(const ArrowColumn& column, int64_t rows, Input* in) {
  if (column.index.empty()) return AddValues(column.format, rows, in);
  const auto num_entries = static_cast<int64_t>(1 + in->Below(5));
  Node* const indices = AddValues(column.index, rows, in);
  const size_t width = WidthOf(column.index);
  auto* const bytes = const_cast<uint8_t*>(static_cast<const uint8_t*>(indices->buffers[1]));
  const int64_t slots = indices->array.offset + indices->array.length;
  // Most indices lie in the dictionary: one byte of each is kept.
  for (int64_t i = 0; i < slots && !in->Chance(16); ++i) {
    uint8_t* const index = bytes + static_cast<size_t>(i) * width;
    std::fill(index + 1, index + width, uint8_t{0});
    *index = static_cast<uint8_t>(*index % num_entries);
  }
  indices->array.dictionary = &AddValues(column.format, num_entries, in)->array;
  return indices;
}

FuzzArray::Node* FuzzArray::AddValues(const std::string& format, int64_t rows, Input* in) {
  const auto offset = static_cast<int64_t>(in->Below(10));
  const int64_t slots = offset + rows;
  const bool has_nulls = in->Chance(128);
  std::vector<const void*> buffers = {nullptr};
  if (has_nulls) buffers[0] = Buffer(BytesOfBits(slots), in);
  std::vector<const void*> values;
  if (format == "u" || format == "z") values = Strings(4, slots, in);
  else if (format == "U" || format == "Z") values = Strings(8, slots, in);
  else if (format[0] == 'v') values = Views(slots, in);
  else values = {Buffer(format == "b" ? BytesOfBits(slots) : WidthOf(format) * static_cast<size_t>(slots), in)};
  buffers.insert(buffers.end(), values.begin(), values.end());
  Node* const node = AddNode(rows, offset, buffers);
  if (!has_nulls && in->Chance(128)) node->array.null_count = 0;
  return node;
}

std::vector<const void*> FuzzArray::Strings(size_t offset_bytes, int64_t slots, Input* in) {
  uint8_t* const offsets = Buffer((static_cast<size_t>(slots) + 1) * offset_bytes, in);
  int64_t next = 0, highest = 0;
  for (size_t i = 0; i <= static_cast<size_t>(slots); ++i) {
    std::memcpy(offsets + i * offset_bytes, &next, offset_bytes);  // of little-endian numbers the low bytes
    highest = std::max(highest, next);
    const uint8_t step = in->Byte();
    next += step < 250 ? step % 20 : int64_t{step} - 256;
  }
  return {offsets, Buffer(static_cast<size_t>(highest), in)};
}

std::vector<const void*> FuzzArray::Views(int64_t slots, Input* in) {
  std::vector<const void*> buffers = {nullptr};
  std::vector<int64_t> sizes(in->Below(3));
  for (int64_t& size : sizes) {
    size = static_cast<int64_t>(in->Below(64));
    buffers.push_back(Buffer(static_cast<size_t>(size), in));
  }
  uint8_t* const views = Buffer(static_cast<size_t>(slots) * 16, in);
  for (int64_t i = 0; i < slots && !in->Chance(8); ++i) {
    auto* const view = reinterpret_cast<int32_t*>(views + static_cast<size_t>(i) * 16);
    view[0] &= 31;
    if (view[0] <= 12) {
      const auto rest = static_cast<size_t>(view[0]);
      std::fill(reinterpret_cast<uint8_t*>(view + 1) + rest, reinterpret_cast<uint8_t*>(view + 4), uint8_t{0});
      continue;
    }
    view[2] &= 3;
    view[3] &= 63;
    const auto number = static_cast<size_t>(view[2]);
    if (number < sizes.size() && view[3] + view[0] <= sizes[number])
      std::memcpy(view + 1, static_cast<const uint8_t*>(buffers[number + 1]) + view[3], 4);
  }
  buffers[0] = views;
  buffers.push_back(Buffer(sizes.size() * 8, in));
  if (!sizes.empty()) std::memcpy(memory_.back().get(), sizes.data(), sizes.size() * 8);
  return buffers;
}

uint8_t* FuzzArray::Buffer(size_t bytes, Input* in) {
  memory_.push_back(std::make_unique<uint8_t[]>(bytes));
  in->Fill(memory_.back().get(), bytes);
  return memory_.back().get();
}

void FuzzArray::Break(Input* in) {
  Node& node = *nodes_[in->Below(static_cast<uint32_t>(nodes_.size()))];
  ArrowArray& array = node.array;
  const int64_t negative = kNegative[in->Below(std::size(kNegative))];
  switch (in->Below(12)) {
    case 0: array.length = negative; break;
    case 1: array.length = std::max<int64_t>(0, array.length - 1 - in->Below(4)); break;
    case 2: array.offset = negative; break;
    case 3: array.offset = INT64_MAX - in->Below(64); break;
    case 4: array.null_count = negative; break;
    case 5: array.null_count = in->Byte(); break;
    case 6: array.n_buffers = negative; break;
    case 7: array.n_buffers = in->Below(static_cast<uint32_t>(array.n_buffers)); break;
    case 8: array.buffers = nullptr; break;
    case 9: node.buffers[in->Below(static_cast<uint32_t>(array.n_buffers))] = nullptr; break;
    case 10: array.dictionary = nullptr; break;
    default:
      if (node.children == nullptr) break;
      if (in->Chance(85)) array.children = nullptr;
      else if (in->Chance(128)) array.n_children = negative;
      else node.children[in->Below(static_cast<uint32_t>(array.n_children))] = nullptr;
  }
}

// ---- results ----

namespace {

void ReadBytes(const void* bytes, size_t size) {
  uint32_t sum = 0;
  for (size_t i = 0; i < size; ++i) sum += static_cast<const uint8_t*>(bytes)[i];
  [[maybe_unused]] const volatile uint32_t kept = sum;
}

bool IsValid(const ArrowArray& array, int64_t slot) {
  if (array.buffers[0] == nullptr) return true;
  return (static_cast<const uint8_t*>(array.buffers[0])[slot / 8] >> slot % 8 & 1) != 0;
}

template <class Offset>
void ReadStrings(const ArrowArray& array) {
  const auto* const offsets = static_cast<const Offset*>(array.buffers[1]) + array.offset;
  for (int64_t i = 0; i < array.length; ++i) {
    Require(offsets[i] <= offsets[i + 1], "offsets of a result rise");
    ReadBytes(static_cast<const uint8_t*>(array.buffers[2]) + offsets[i],
              static_cast<size_t>(offsets[i + 1] - offsets[i]));
  }
}

void ReadViews(const ArrowArray& array) {
  const auto* const views = static_cast<const int32_t*>(array.buffers[1]);
  for (int64_t i = array.offset; i < array.offset + array.length; ++i) {
    const int32_t* const view = views + i * 4;
    if (view[0] <= 12 || !IsValid(array, i)) continue;
    Require(view[2] >= 0 && view[2] < array.n_buffers - 3, "a view of a result names a buffer");
    ReadBytes(static_cast<const uint8_t*>(array.buffers[view[2] + 2]) + view[3], static_cast<size_t>(view[0]));
  }
}

void ReadColumnOf(const ArrowArray& array, const std::string& format) {
  const int64_t slots = array.offset + array.length;
  if (array.buffers[0] != nullptr) ReadBytes(array.buffers[0], BytesOfBits(slots));
  if (format == "u" || format == "z") {
    if (array.length != 0) ReadStrings<int32_t>(array);
  } else if (format == "U" || format == "Z") {
    if (array.length != 0) ReadStrings<int64_t>(array);
  } else if (format[0] == 'v') ReadViews(array);
  else ReadBytes(array.buffers[1], format == "b" ? BytesOfBits(slots) : WidthOf(format) * static_cast<size_t>(slots));
}

}  // namespace

void ReadAndRelease(ArrowArray* array, const ArrowSchema& schema) {
  Require(array->n_children == schema.n_children, "a result has the columns of its schema");
  for (int64_t i = 0; i < array->n_children; ++i) {
    Require(array->children[i]->length == array->length, "the columns of a result have its length");
    ReadColumnOf(*array->children[i], schema.children[i]->format);
  }
  array->release(array);
}

}  // namespace quern::fuzz
