// SPDX-License-Identifier: Apache-2.0
// Facts of a machine: their text parses to the same facts, measured values are plausible, and measuring ends in time.
#include "codegen/machine/machine_facts.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

namespace quern {
namespace {

std::string Message(const absl::Status& status) { return std::string(status.message()); }

MachineSignature ASignature() {
  MachineSignature signature;
  signature.cpu_name = "AMD EPYC 9R45";
  signature.cpu = "znver5";
  signature.microcode = "0xb10101f";
  signature.hypervisor = "kvm";
  signature.cores = 2;
  signature.l2_bytes = 1 << 20;
  signature.l3_bytes = 32 << 20;
  signature.huge_pages = "madvise";
  return signature;
}

MachineFacts SomeFacts() {
  MachineFacts facts;
  facts.signature = ASignature();
  facts.features = "avx2 bmi2";
  facts.memory = {{32768, false, 1.25, 0.5, 8, 0.625, 0},
                  {32768, true, 1.25, 0.5, 8, 0.625, 0},
                  {1 << 28, true, 98.5, 5.25, 64, 9.875, 16}};
  facts.l1_bytes = 32768;
  facts.l2_bytes = 1 << 20;
  facts.l3_bytes = 16 << 20;
  facts.sequential_read_gb_s = 12.5;
  facts.sequential_write_gb_s = 8.25;
  facts.sequential_copy_gb_s = 6.125;
  facts.zero_fill_gb_s = 10;
  facts.one_fill_gb_s = 8;
  facts.alternating_fill_gb_s = 8.5;
  facts.alternating_control_gb_s = 8.375;
  facts.ones_over_zeros_gb_s = 8.125;
  facts.zero_stores_are_cheaper = true;
  facts.seconds = 2.875;
  return facts;
}

// ---- signature -------------------------------------------------------------------------------------------------

constexpr const char* kSignatureForm =
    "; accepted: cpu_name=.. cpu=.. microcode=.. hypervisor=.. l2_bytes=.. l3_bytes=.. huge_pages=.. cores=.., each "
    "once, texts in quotes "
    "where they have blanks";

TEST(MachineSignature, ItsTextIsOneLineOfWords) {
  EXPECT_EQ(
      PrintSignature(ASignature()),
      "cpu_name=\"AMD EPYC 9R45\" cpu=znver5 microcode=0xb10101f hypervisor=kvm l2_bytes=1048576 l3_bytes=33554432 "
      "huge_pages=madvise cores=2");
  EXPECT_EQ(PrintSignature(MachineSignature()),
            "cpu_name=\"\" cpu=\"\" microcode=\"\" hypervisor=\"\" l2_bytes=0 l3_bytes=0 huge_pages=\"\" cores=0");
}

TEST(MachineSignature, ItsTextParsesBack) {
  MachineSignature odd = ASignature();
  odd.cpu_name = "a \"quoted\" \\ name = of=CPU";
  odd.hypervisor = "";
  for (const MachineSignature& signature : {ASignature(), MachineSignature(), HostSignature(), odd}) {
    const auto parsed = ParseSignature(PrintSignature(signature));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, signature);
  }
}

TEST(MachineSignature, WhatIsNoneIsRefusedWithTheWord) {
  const auto error = [](const std::string& text) { return Message(ParseSignature(text).status()); };
  const std::string good = PrintSignature(ASignature());
  EXPECT_EQ(error(good + " color=red"), "bad field of a machine's signature: color=red" + std::string(kSignatureForm));
  EXPECT_EQ(error(good + " cores=2"), "bad field of a machine's signature: cores=2" + std::string(kSignatureForm));
  EXPECT_EQ(error("cores=two"), "bad field of a machine's signature: cores=two" + std::string(kSignatureForm));
  EXPECT_EQ(error("cores=99999999999"),
            "bad field of a machine's signature: cores=99999999999" + std::string(kSignatureForm));
  EXPECT_EQ(error("cpu_name=\"AMD"), "bad field of a machine's signature: cpu_name=" + std::string(kSignatureForm));
  EXPECT_EQ(error("cpu=znver5"), "incomplete signature of a machine: cpu=znver5" + std::string(kSignatureForm));
  EXPECT_EQ(error(""), "incomplete signature of a machine: \"\"" + std::string(kSignatureForm));
  for (size_t length = 0; length + 1 < good.size(); ++length)
    EXPECT_FALSE(ParseSignature(good.substr(0, length)).ok()) << length;
}

TEST(MachineSignature, TheHostIsTheSameAtEveryCall) {
  const MachineSignature host = HostSignature();
  EXPECT_EQ(HostSignature(), host);
  EXPECT_GE(host.cores, 1u);
  EXPECT_EQ(SignatureDifference(host, host), "");
}

TEST(MachineSignature, OnlyWhatMattersToTuningIsADifference) {
  MachineSignature other = ASignature();
  other.microcode = "0xb102000";
  other.cores = 1;
  EXPECT_EQ(SignatureDifference(ASignature(), other), "");
  other.cpu = "znver4";
  EXPECT_EQ(SignatureDifference(other, ASignature()), "cpu znver4 here, znver5 in the profile");
  other.l3_bytes = 1 << 20;
  other.hypervisor = "";
  EXPECT_EQ(SignatureDifference(other, ASignature()),
            "cpu znver4 here, znver5 in the profile; hypervisor \"\" here, kvm in the profile; l3_bytes 1048576 here, "
            "33554432 in the profile");
}

// ---- lines of a profile ----------------------------------------------------------------------------------------

TEST(MachineFacts, LinesSayWhatWasMeasured) {
  EXPECT_EQ(FactLines(SomeFacts()),
            (std::vector<std::string>{"fact memory bytes=32768 huge_pages=0 latency_ns=1.250 read_ns=0.500 "
                                      "read_misses=8 write_ns=0.625 write_misses=0",
                                      "fact memory bytes=32768 huge_pages=1 latency_ns=1.250 read_ns=0.500 "
                                      "read_misses=8 write_ns=0.625 write_misses=0",
                                      "fact memory bytes=268435456 huge_pages=1 latency_ns=98.500 read_ns=5.250 "
                                      "read_misses=64 write_ns=9.875 write_misses=16",
                                      "fact caches l1_bytes=32768 l2_bytes=1048576 l3_bytes=16777216",
                                      "fact sequential read_gb_s=12.500 write_gb_s=8.250 copy_gb_s=6.125",
                                      "fact stores zero_fill_gb_s=10.000 one_fill_gb_s=8.000 "
                                      "alternating_fill_gb_s=8.500 alternating_control_gb_s=8.375 "
                                      "ones_over_zeros_gb_s=8.125 zero_stores_are_cheaper=1",
                                      "fact measuring seconds=2.875"}));
}

TEST(MachineFacts, LinesParseBack) {
  for (const MachineFacts& facts : {SomeFacts(), MachineFacts()}) {
    MachineFacts parsed;
    for (const std::string& line : FactLines(facts)) {
      const absl::Status status = ParseFactLine(line, &parsed);
      ASSERT_TRUE(status.ok()) << status;
    }
    EXPECT_EQ(FactLines(parsed), FactLines(facts));
    EXPECT_EQ(parsed.memory.size(), facts.memory.size());
  }
}

TEST(MachineFacts, ABadLineIsRefusedWithItsWord) {
  const auto error = [](const std::string& line) {
    MachineFacts facts = SomeFacts();
    return Message(ParseFactLine(line, &facts));
  };
  const std::string names =
      "; accepted: fact NAME FIELD=.. with NAME one of memory, caches, sequential, stores, measuring";
  EXPECT_EQ(error("fact weather sunny=1"), "unknown fact: fact weather sunny=1" + names);
  EXPECT_EQ(error(""), "unknown fact: \"\"" + names);
  EXPECT_EQ(error("memory bytes=1"), "unknown fact: memory bytes=1" + names);
  const std::string caches =
      "; accepted: l1_bytes=.. l2_bytes=.. l3_bytes=.. in this order, numbers from 0 to 1e9, flags 0 or 1";
  EXPECT_EQ(error("fact caches l1_bytes=1 l2_bytes=-2 l3_bytes=3"), "bad field of fact caches: l2_bytes=-2" + caches);
  EXPECT_EQ(error("fact caches l1_bytes=1 l2_bytes=2"), "bad field of fact caches: \"\"" + caches);
  EXPECT_EQ(error("fact caches l1_bytes=1 l2_bytes=2 l3_bytes=3 l4_bytes=4"),
            "bad field of fact caches: l4_bytes=4" + caches);
  for (const char* bad :
       {"seconds=", "seconds=nan", "seconds=inf", "seconds=-1", "seconds=1e300", "seconds=1x", "second=1"}) {
    EXPECT_EQ(error("fact measuring " + std::string(bad)),
              "bad field of fact measuring: " + std::string(bad) +
                  "; accepted: seconds=.. in this order, numbers from 0 to 1e9, flags 0 or 1");
  }
  EXPECT_EQ(error(FactLines(SomeFacts())[1]),
            "fact given twice: memory bytes=32768 huge_pages=1; accepted: each size once with and once without");
}

TEST(MachineFacts, ARefusedLineChangesNoSizes) {
  MachineFacts facts;
  EXPECT_FALSE(ParseFactLine("fact memory bytes=32768 huge_pages=2", &facts).ok());
  EXPECT_TRUE(facts.memory.empty());
}

// ---- printed text ---------------------------------------------------------------------------------------------

TEST(MachineFacts, PeopleAreTold) {
  EXPECT_EQ(PrintFacts(SomeFacts()),
            R"(machine     AMD EPYC 9R45 (znver5), microcode 0xb10101f, hypervisor kvm, 2 cores, huge pages madvise
features    avx2 bmi2
signature   cpu_name="AMD EPYC 9R45" cpu=znver5 microcode=0xb10101f hypervisor=kvm l2_bytes=1048576 l3_bytes=33554432 )"
            R"(huge_pages=madvise cores=2
caches      L1 32 KiB, L2 1 MiB, L3 16 MiB measured; L2 1 MiB, L3 32 MiB reported
sequential  read 12.5 GB/s, write 8.2, copy 6.1
stores      zeros over zeros 10.0 GB/s, ones over ones 8.0, lines of zeros and ones 8.5, of ones and twos 8.4, )"
            R"(ones over zeros 8.1: zeros are cheaper

ns of a random line     small pages                            huge pages
      size    latency          read         write    latency          read         write
    32 KiB       1.25    0.50   (8)    0.62   (0)       1.25    0.50   (8)    0.62   (0)
   256 MiB          -             -             -      98.50    5.25  (64)    9.88  (16)
latency: of a load that the next one waits for; (n): lines prefetched at which read and write were best
measured in 2.9 s
)");
}

TEST(MachineFacts, JsonHasWhatTheLinesHave) {
  MachineFacts facts = SomeFacts();
  facts.memory.resize(1);
  facts.signature.cpu_name = "a \"b\\";
  EXPECT_EQ(FactsJson(facts),
            R"({"signature":{"cpu_name":"a \"b\\","cpu":"znver5","microcode":"0xb10101f","hypervisor":"kvm","cores":2,)"
            R"("l2_bytes":1048576,)"
            R"("l3_bytes":33554432,"huge_pages":"madvise"},"features":"avx2 bmi2","memory":[{"bytes":32768,)"
            R"("huge_pages":false,)"
            R"("latency_ns":1.250,"read_ns":0.500,"read_misses":8,"write_ns":0.625,"write_misses":0}],)"
            R"("caches":{"l1_bytes":32768,)"
            R"("l2_bytes":1048576,"l3_bytes":16777216},"sequential":{"read_gb_s":12.500,"write_gb_s":8.250,)"
            R"("copy_gb_s":6.125},)"
            R"("stores":{"zero_fill_gb_s":10.000,"one_fill_gb_s":8.000,"alternating_fill_gb_s":8.500,)"
            R"("alternating_control_gb_s":8.375,)"
            R"("ones_over_zeros_gb_s":8.125,"zero_stores_are_cheaper":true},"measuring":{"seconds":2.875}})");
}

// ---- caches ----------------------------------------------------------------------------------------------------

// Memory whose latencies are those of 32 KiB, 64 KiB and so on.
MachineFacts Curve(const std::vector<double>& latencies) {
  MachineFacts facts;
  for (size_t i = 0; i < latencies.size(); ++i) {
    facts.memory.push_back({uint64_t{32768} << i, false, latencies[i] * 2, 1, 8, 1, 8});  // translations miss
    facts.memory.push_back({uint64_t{32768} << i, true, latencies[i], 1, 8, 1, 8});
  }
  FindCaches(&facts);
  return facts;
}

TEST(MachineFacts, CachesEndWhereLatencyBeginsToRise) {
  const MachineFacts facts = Curve({1, 2, 3, 3, 3, 4, 7, 11, 13, 14, 28, 69, 95, 96});
  EXPECT_EQ(facts.l1_bytes, uint64_t{32} << 10);
  EXPECT_EQ(facts.l2_bytes, uint64_t{512} << 10);
  EXPECT_EQ(facts.l3_bytes, uint64_t{16} << 20);
}

TEST(MachineFacts, ASpikeIsNoCache) {
  const MachineFacts facts = Curve({1, 1, 5, 5, 80, 5, 6, 90, 91});
  EXPECT_EQ(facts.l1_bytes, uint64_t{64} << 10);
  EXPECT_EQ(facts.l2_bytes, uint64_t{2} << 20);
  EXPECT_EQ(facts.l3_bytes, 0u);
}

TEST(MachineFacts, FlatMemoryHasNoCaches) {
  const MachineFacts facts = Curve({7, 7, 7.1, 7, 7, 7.2});
  EXPECT_EQ(facts.l1_bytes, 0u);
  EXPECT_EQ(facts.l2_bytes, 0u);
  EXPECT_EQ(Curve({}).l1_bytes, 0u);
  EXPECT_EQ(Curve({3}).l1_bytes, 0u);
}

// ---- model -----------------------------------------------------------------------------------------------------

TEST(MachineFacts, AModelIsWhatWasMeasured) {
  Machine machine;
  machine.l2_bytes = 2 << 20;
  machine.l3_bytes = 64 << 20;
  const MemoryModel model = ModelOf(SomeFacts(), machine);
  EXPECT_EQ(model.l2_bytes, uint64_t{1} << 20);
  EXPECT_EQ(model.l3_bytes, uint64_t{16} << 20);
  EXPECT_EQ(model.latency_ns[0], 1.25);
  EXPECT_EQ(model.line_ns[0], 0.5);
  for (uint32_t size_class = 28; size_class <= kLargestSizeClass;
       ++size_class) {  // so far beyond the caches that nothing larger is slower
    EXPECT_EQ(model.latency_ns[size_class - kSmallestSizeClass], 98.5);
    EXPECT_EQ(model.line_ns[size_class - kSmallestSizeClass], 5.25);
  }
}

TEST(MachineFacts, AModelBelievesWhatWasNotMeasured) {
  Machine machine;
  machine.l2_bytes = 2 << 20;
  machine.l3_bytes = 64 << 20;
  const MemoryModel model = ModelOf(MachineFacts(), machine), believed = BelievedModel(machine);
  EXPECT_EQ(model.l2_bytes, believed.l2_bytes);
  EXPECT_EQ(model.l3_bytes, believed.l3_bytes);
  for (uint32_t i = 0; i <= kLargestSizeClass - kSmallestSizeClass; ++i) {
    EXPECT_EQ(model.latency_ns[i], believed.latency_ns[i]);
    EXPECT_EQ(model.line_ns[i], believed.line_ns[i]);
  }
}

// ---- measuring -------------------------------------------------------------------------------------------------

// No two numbers are compared: a machine under load may measure anything.
TEST(MachineFacts, AllIsMeasured) {
  MachineFactsOptions options;
  options.seconds = 0.4;
  options.max_bytes = uint64_t{64} << 20;
  uint32_t told = 0;
  options.progress = [&](const std::string& what) { told += what.empty() ? 0 : 1; };
  const auto facts = MeasureMachine(options);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_GT(told, 4u);
  EXPECT_EQ(facts->signature, HostSignature());
  EXPECT_FALSE(facts->features.empty());
  ASSERT_GE(facts->memory.size(), 7u);  // 32 KiB to 2 MiB, on small pages at least
  for (size_t i = 0; i < facts->memory.size(); ++i) {
    const MemoryFact& fact = facts->memory[i];
    EXPECT_GT(fact.latency_ns, 0);
    EXPECT_GT(fact.read_ns, 0);
    EXPECT_GT(fact.write_ns, 0);
    EXPECT_LE(fact.bytes, options.max_bytes);
    if (i > 0) {
      EXPECT_GE(fact.bytes, facts->memory[i - 1].bytes);
    }
  }
  for (const double gb_s : {facts->sequential_read_gb_s, facts->sequential_write_gb_s, facts->sequential_copy_gb_s,
                            facts->zero_fill_gb_s, facts->one_fill_gb_s, facts->alternating_fill_gb_s,
                            facts->alternating_control_gb_s, facts->ones_over_zeros_gb_s})
    EXPECT_GT(gb_s, 0);
}

TEST(MachineFacts, NoTimeStillMeasuresTheSmallTables) {
  MachineFactsOptions options;
  options.seconds = 0;
  options.max_bytes = 1;  // below the smallest size
  const auto facts = MeasureMachine(options);
  ASSERT_TRUE(facts.ok()) << facts.status();
  ASSERT_FALSE(facts->memory.empty());
  for (const MemoryFact& fact : facts->memory) EXPECT_EQ(fact.bytes, 32768u);
}

TEST(MachineFacts, MeasuringEndsBeforeTheNextTable) {
  std::atomic<bool> stop{false};
  int said = 0;
  MachineFactsOptions options;
  options.seconds = 60;
  options.stop = &stop;
  options.progress = [&](const std::string&) { stop = ++said == 1; };
  const auto facts = MeasureMachine(options);
  EXPECT_TRUE(absl::IsCancelled(facts.status())) << facts.status();
  EXPECT_EQ(facts.status().message(), "measuring the machine: ended early; accepted: to its end");
  EXPECT_EQ(said, 1);
}

TEST(MachineFacts, SomeMemoryIsFree) { EXPECT_GT(FreeMemoryBytes(), uint64_t{1} << 20); }

}  // namespace
}  // namespace quern
