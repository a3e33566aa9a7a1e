// SPDX-License-Identifier: Apache-2.0
// Tables of weights in the format that tools/collations/derive.py writes and documents. collation_weights.cc unpacks
// them when a collation is first used.
#ifndef QUERN_RUNTIME_COLLATION_PACKED_WEIGHTS_H_
#define QUERN_RUNTIME_COLLATION_PACKED_WEIGHTS_H_

#include <string_view>

namespace quern {

extern const std::string_view kPackedGeneral;
extern const std::string_view kPackedUca400;
extern const std::string_view kPackedUca520;
extern const std::string_view kPackedUca900;

}  // namespace quern

#endif  // QUERN_RUNTIME_COLLATION_PACKED_WEIGHTS_H_
