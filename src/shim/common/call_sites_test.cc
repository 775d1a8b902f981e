#include "shim/common/call_sites.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace xsched::shim {
namespace {

const void* Site(uint64_t number) { return reinterpret_cast<const void*>(0x7f0000001000 + number * 16); }

class CallSitesTest : public testing::Test {
 protected:
  std::unique_ptr<CallSites> sites_ = std::make_unique<CallSites>();
};

TEST_F(CallSitesTest, what_was_said_last_is_remembered) {
  EXPECT_EQ(sites_->Find(Site(1)), CallSites::kUnknown);
  sites_->Remember(Site(1), 7);
  sites_->Remember(Site(2), 0);
  EXPECT_EQ(sites_->Find(Site(1)), 7);
  EXPECT_EQ(sites_->Find(Site(2)), 0);
  sites_->Remember(Site(1), CallSites::kAnswers - 1);
  EXPECT_EQ(sites_->Find(Site(1)), CallSites::kAnswers - 1);
}

TEST_F(CallSitesTest, each_question_has_its_answer) {
  for (int question = 0; question < CallSites::kQuestions; ++question)
    sites_->Remember(Site(1), question % 2, question);
  int known = 0;
  for (int question = 0; question < CallSites::kQuestions; ++question) {
    const int answer = sites_->Find(Site(1), question);
    if (answer == CallSites::kUnknown) continue;
    EXPECT_EQ(answer, question % 2);
    ++known;
  }
  EXPECT_GT(known, CallSites::kQuestions * 9 / 10);
}

// A large program has this many. Nearly all of them stay in the cache.
TEST_F(CallSitesTest, thousands_are_remembered) {
  constexpr int kSites = 4000;
  for (int i = 0; i < kSites; ++i) sites_->Remember(Site(static_cast<uint64_t>(i) * 37), i % 2);
  int known = 0;
  for (int i = 0; i < kSites; ++i) {
    const int answer = sites_->Find(Site(static_cast<uint64_t>(i) * 37));
    if (answer == CallSites::kUnknown) continue;
    EXPECT_EQ(answer, i % 2);
    ++known;
  }
  EXPECT_GT(known, kSites * 99 / 100);
}

TEST_F(CallSitesTest, the_newest_is_known_however_many_there_were) {
  for (uint64_t i = 0; i < 200000; ++i) {
    sites_->Remember(Site(i), static_cast<int>(i % CallSites::kAnswers));
    ASSERT_EQ(sites_->Find(Site(i)), static_cast<int>(i % CallSites::kAnswers));
  }
}

TEST_F(CallSitesTest, nothing_is_known_after_libraries_have_gone) {
  for (uint64_t i = 0; i < 1000; ++i) sites_->Remember(Site(i), 1);
  sites_->Forget();
  for (uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(sites_->Find(Site(i)), CallSites::kUnknown);
}

// The sites of each thread have a different answer. None may get another's.
TEST_F(CallSitesTest, an_answer_is_never_another_sites) {
  auto work = [this](int mine) {
    for (int round = 0; round < 20; ++round) {
      for (uint64_t i = 0; i < 5000; ++i) {
        const void* site = Site(i * 3 + static_cast<uint64_t>(mine));
        const int answer = sites_->Find(site);
        ASSERT_TRUE(answer == CallSites::kUnknown || answer == mine);
        sites_->Remember(site, mine);
      }
    }
  };
  std::thread others[] = {std::thread(work, 0), std::thread(work, 1)};
  work(2);
  for (std::thread& other : others) other.join();
}

}  // namespace
}  // namespace xsched::shim
