#include "shim/common/pass_rules.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "shim/common/testing/scrambled.h"

namespace xsched::shim {
namespace {

using Reason = PassRules::Reason;

TEST(PassRules, a_library_is_listed_by_its_name_or_the_beginning_of_it) {
  EXPECT_TRUE(IsListed("libnccl", "/usr/lib/libnccl.so.2"));
  EXPECT_TRUE(IsListed("libcufft.so.11", "libcufft.so.11"));
  EXPECT_TRUE(IsListed("libfirst.so,libsecond.so", "/opt/libsecond.so"));
  EXPECT_TRUE(IsListed("libfirst.so:libsecond.so", "/opt/libsecond.so"));
}

TEST(PassRules, another_library_is_not) {
  EXPECT_FALSE(IsListed("libnccl", "/usr/lib/libcublas.so.12"));
  EXPECT_FALSE(IsListed("libnccl.so.2", "/usr/lib/libnccl.so.1"));
  EXPECT_FALSE(IsListed("nccl", "/usr/lib/libnccl.so.2")) << "a name is matched from its beginning";
}

TEST(PassRules, folders_do_not_count) { EXPECT_FALSE(IsListed("nccl", "/opt/nccl/libother.so")); }

TEST(PassRules, an_empty_name_lists_nothing) {
  EXPECT_FALSE(IsListed("", "/usr/lib/libany.so"));
  EXPECT_FALSE(IsListed(",, ", "/usr/lib/libany.so"));
}

TEST(PassRules, the_program_itself_has_no_name) { EXPECT_FALSE(IsListed("lib", "")); }

class PassRulesFile : public testing::Test {
 protected:
  void Read(const char* text) {
    int line = 0;
    ASSERT_TRUE(rules_.ReadFile(text, &line)) << "line " << line;
  }
  Reason Of(const char* library, const char* function = "hipMemcpy") {
    return rules_.Decide(library, function);
  }

  PassRules rules_;
};

TEST_F(PassRulesFile, nothing_passes_by_default) {
  EXPECT_TRUE(rules_.empty());
  EXPECT_EQ(Of("/opt/rocm/lib/libhipblas.so.2"), Reason::kScheduled);
  Read("{}");
  EXPECT_TRUE(rules_.empty());
}

TEST_F(PassRulesFile, those_on_a_whitelist_pass) {
  Read(R"({"passthrough_mode": "whitelist", "libraries": ["libhipblas.so", "libMIOpen"]})");
  EXPECT_FALSE(rules_.empty());
  EXPECT_EQ(Of("/opt/rocm/lib/libhipblas.so.2"), Reason::kLibrary);
  EXPECT_EQ(Of("/opt/rocm/lib/libMIOpen.so.1"), Reason::kLibrary);
  EXPECT_EQ(Of("/opt/rocm/lib/librocblas.so.4"), Reason::kScheduled);
  EXPECT_EQ(Of(""), Reason::kScheduled);
}

TEST_F(PassRulesFile, without_a_mode_the_libraries_are_a_whitelist) {
  Read(R"({"libraries": ["libhipblas.so"]})");
  EXPECT_EQ(Of("/opt/rocm/lib/libhipblas.so.2"), Reason::kLibrary);
}

TEST_F(PassRulesFile, all_but_those_on_a_blacklist_pass) {
  Read(R"({"passthrough_mode": "blacklist", "libraries": ["libtorch_hip.so"]})");
  EXPECT_EQ(Of("/venv/torch/lib/libtorch_hip.so"), Reason::kScheduled);
  EXPECT_EQ(Of("/opt/rocm/lib/libhipblas.so.2"), Reason::kLibrary);
  EXPECT_EQ(Of(""), Reason::kLibrary);
}

TEST_F(PassRulesFile, an_empty_blacklist_lets_everything_pass) {
  Read(R"({"passthrough_mode": "blacklist", "libraries": []})");
  EXPECT_EQ(Of(""), Reason::kLibrary);
}

TEST_F(PassRulesFile, what_is_said_of_a_function_goes_first) {
  Read(R"({"libraries": ["libhipblas.so"],
           "functions": {"hipMemcpy": "passthrough", "hipModuleLaunchKernel": "schedule"}})");
  EXPECT_EQ(Of("/usr/bin/python3", "hipMemcpy"), Reason::kFunction);
  EXPECT_EQ(Of("/opt/rocm/lib/libhipblas.so.2", "hipModuleLaunchKernel"), Reason::kScheduled);
  EXPECT_EQ(Of("/opt/rocm/lib/libhipblas.so.2", "hipMemset"), Reason::kLibrary);
}

TEST_F(PassRulesFile, functions_may_be_two_lists) {
  Read(R"({"functions": {"passthrough": ["hipMemset", "hipMemcpy"], "schedule": ["hipLaunchKernel"]}})");
  EXPECT_EQ(Of("", "hipMemset"), Reason::kFunction);
  EXPECT_EQ(Of("", "hipLaunchKernel"), Reason::kScheduled);
}

TEST_F(PassRulesFile, names_of_the_environment_pass_in_any_mode) {
  Read(R"({"passthrough_mode": "blacklist", "libraries": ["libmine.so"]})");
  rules_.SetListedNames("libmine.so");
  EXPECT_EQ(Of("/opt/libmine.so"), Reason::kLibrary);
}

TEST_F(PassRulesFile, what_it_does_not_know_is_passed_over) {
  Read(R"({"comment": ["of", {"a": "user"}], "version": 2, "libraries": ["libmine.so"]})");
  EXPECT_EQ(Of("/opt/libmine.so"), Reason::kLibrary);
}

TEST_F(PassRulesFile, nothing_counts_of_a_file_with_a_fault) {
  struct {
    const char* text;
    int line;
  } const kFaulty[] = {
      {"{\"libraries\": [\"libmine.so\"]\n", 2},
      {"{\"libraries\": [\"libmine.so\"],\n\"passthrough_mode\": \"greylist\"}", 2},
      {"{\"libraries\":\n\"libmine.so\"}", 2},
      {"{\"functions\": {\"hipMemcpy\": \"sometimes\"}}", 1},
      {"{\"functions\": {\"other\": []}}", 1},
      {"{\"libraries\": [1]}", 1},
      {"[]", 1},
      {"", 1},
  };
  for (const auto& faulty : kFaulty) {
    PassRules rules;
    int line = 0;
    EXPECT_FALSE(rules.ReadFile(faulty.text, &line)) << faulty.text;
    EXPECT_EQ(line, faulty.line) << faulty.text;
    EXPECT_TRUE(rules.empty()) << faulty.text;
  }
}

// A file with `names` names of one kind.
std::string FileWith(const char* sort, int names) {
  std::ostringstream file;
  file << "{" << sort << "[\"0\"";
  for (int i = 1; i < names; ++i) file << ", \"" << i << '"';
  file << "]}" << (strchr(sort, '{') == nullptr ? "" : "}");
  return file.str();
}

TEST_F(PassRulesFile, as_many_names_count_as_anybody_writes) {
  constexpr char kLibraries[] = R"("libraries": )";
  constexpr char kFunctions[] = R"("functions": {"schedule": )";
  Read(FileWith(kLibraries, 1024).c_str());
  EXPECT_EQ(Of("/opt/1023.so"), Reason::kLibrary);
  for (const char* sort : {kLibraries, kFunctions}) {
    PassRules enough, too_many;
    int line = 0;
    EXPECT_TRUE(enough.ReadFile(FileWith(sort, 1024), &line)) << sort;
    EXPECT_FALSE(too_many.ReadFile(FileWith(sort, 1025), &line)) << sort;
    EXPECT_TRUE(too_many.empty()) << sort;
  }
}

// Whatever the file contains, either all of its rules apply or none does.
TEST_F(PassRulesFile, no_file_whatsoever_is_understood_by_half) {
  const std::string whole = R"({"passthrough_mode": "blacklist", "libraries": ["a", "\u0041\n"],
      "functions": {"hipMemcpy": "passthrough", "schedule": ["b"]}, "other": [{"c": 1.5}, null]})";
  std::mt19937 random(1);
  int understood = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<char> text = Scrambled(whole, random() % 3, random);
    if (random() % 4 == 0) text.resize(random() % (text.size() + 1));
    text.shrink_to_fit();
    PassRules rules;
    int line = 0;
    const bool ok = rules.ReadFile({text.data(), text.size()}, &line);
    understood += ok;
    if (ok) continue;
    EXPECT_TRUE(rules.empty());
    EXPECT_GE(line, 1);
  }
  EXPECT_GT(understood, 5000) << "what was not changed, or where it does not matter";
}

}  // namespace
}  // namespace xsched::shim
