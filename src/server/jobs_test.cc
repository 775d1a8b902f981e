#include "server/jobs.h"

#include <gtest/gtest.h>

namespace xsched::server {
namespace {

TEST(Jobs, processes_of_one_user_with_one_number_are_one_job) {
  Jobs jobs;
  sched::JobId first = jobs.Join({1000, 7});
  EXPECT_NE(first, sched::JobId{}) << "0 is none";
  EXPECT_EQ(jobs.Join({1000, 7}), first);
  EXPECT_NE(jobs.Join({1000, 8}), first);
}

TEST(Jobs, nobody_joins_the_job_of_another_user_by_sending_its_number) {
  Jobs jobs;
  EXPECT_NE(jobs.Join({1000, 7}), jobs.Join({1001, 7}));
}

TEST(Jobs, a_job_lasts_until_its_last_process_has_left_and_its_id_is_not_given_again) {
  Jobs jobs;
  sched::JobId first = jobs.Join({1000, 7});
  jobs.Join({1000, 7});
  jobs.Leave({1000, 7});
  EXPECT_EQ(jobs.Join({1000, 7}), first);
  jobs.Leave({1000, 7});
  jobs.Leave({1000, 7});
  EXPECT_NE(jobs.Join({1000, 7}), first);
}

TEST(Jobs, two_that_are_united_are_one_with_all_that_belongs_to_them) {
  Jobs jobs;
  jobs.Join({1000, 1});
  jobs.Join({1000, 2});
  jobs.Join({1000, 3});
  jobs.Join({1001, 2});
  EXPECT_TRUE(jobs.Unite({1000, 1}, {1000, 2}));
  EXPECT_FALSE(jobs.Unite({1000, 2}, {1000, 1})) << "they are one";
  EXPECT_TRUE(jobs.Unite({1000, 3}, {1000, 2}));
  EXPECT_EQ(jobs.IdOf({1000, 1}), jobs.IdOf({1000, 3}));
  EXPECT_NE(jobs.IdOf({1001, 2}), jobs.IdOf({1000, 2}));
}

}  // namespace
}  // namespace xsched::server
