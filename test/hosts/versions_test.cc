// SPDX-License-Identifier: Apache-2.0
// What hosts store beside what they keep, and compare later: versions of collations.
#include <gtest/gtest.h>

#include <string>

#include "test/hosts/jobs.h"

namespace quern_test {
namespace {

// ---- collations ----

TEST(CollationVersions, AreTextsThatLive) {
  const char *version = nullptr, *again = nullptr;
  ASSERT_EQ(quern_collation_version("utf8mb4_unicode_ci", &version, nullptr), QUERN_OK);
  const std::string text = version;
  EXPECT_EQ(text.size(), 18u) << "a number and the digest of a table: " << text;
  EXPECT_EQ(Take(quern::CollationVersion("binary")), "1");
  ASSERT_EQ(quern_collation_version("utf8mb4_unicode_ci", &again, nullptr), QUERN_OK);
  EXPECT_EQ(again, version) << "the same text, which is not made twice";
  EXPECT_EQ(Take(quern::CollationVersion("tidb.utf8mb4_unicode_ci")), text) << "the same weights";
  EXPECT_NE(Take(quern::CollationVersion("utf8mb4_0900_ai_ci")), text);
}

TEST(CollationVersions, AreAskedForByAnyThread) {
  OnThreads(4, [] {
    for (const char* name : {"utf8mb4_general_ci", "utf8mb4_unicode_520_ci", "ascii_ci"})
      EXPECT_FALSE(Take(quern::CollationVersion(name)).empty());
  });
}

TEST(CollationVersions, UnknownNames) {
  const char* version = "";
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_collation_version, "klingon", &version).substr(0, 37),
            "unknown collation: klingon; accepted:");
  EXPECT_EQ(version, nullptr);
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_collation_version, nullptr, &version),
            "null argument: name; accepted: a pointer");
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_collation_version, "binary", nullptr),
            "null argument: version; accepted: a pointer");
}

}  // namespace
}  // namespace quern_test
