// SPDX-License-Identifier: Apache-2.0
// Whether this program runs under AddressSanitizer or ThreadSanitizer, which map memory, retain it and start threads of
// their own.
#ifndef QUERN_TEST_UNIT_RUNTIME_BASE_SANITIZED_H_
#define QUERN_TEST_UNIT_RUNTIME_BASE_SANITIZED_H_

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define QUERN_TEST_SANITIZED
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define QUERN_TEST_SANITIZED
#endif

#if defined(QUERN_TEST_SANITIZED)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

#endif  // QUERN_TEST_UNIT_RUNTIME_BASE_SANITIZED_H_
