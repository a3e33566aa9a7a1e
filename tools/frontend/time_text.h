// SPDX-License-Identifier: Apache-2.0
// Dates and times as users write them, as numbers of the units that columns count.
#ifndef QUERN_TOOLS_FRONTEND_TIME_TEXT_H_
#define QUERN_TOOLS_FRONTEND_TIME_TEXT_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace quern::cli {

constexpr int64_t kSecondsPerDay = 86'400;

// Each returns nullopt for a text of another form, and for one with a fraction of a second that is no whole number of
// units. `per_second`: units a second, 1 to 10^9.

// "1998-09-02" as days since 1970-01-01.
std::optional<int64_t> DaysOf(std::string_view text);
// "12:30", "12:30:15.25" as units since midnight.
std::optional<int64_t> TimeOf(std::string_view text, int64_t per_second);
// "1998-09-02", "1998-09-02 12:30", "1998-09-02T12:30:15.25+01:00" as units since 1970-01-01 in UTC. A text with an
// offset from UTC (Z, +01, +0130, -01:30) needs has_zone; one without is UTC.
std::optional<__int128> TimestampOf(std::string_view text, int64_t per_second, bool has_zone);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FRONTEND_TIME_TEXT_H_
