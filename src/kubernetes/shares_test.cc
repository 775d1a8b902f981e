#include "kubernetes/shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace xsched::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> SharesOf(const std::string& gpu, int begin, int end) {
  std::vector<std::string> ids;
  for (int number = begin; number < end; ++number) ids.push_back(IdOf({gpu, number}));
  return ids;
}
std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<std::string> Preferred(const std::vector<std::string>& available, int size,
                                   const std::vector<std::string>& required = {}) {
  Result<std::vector<std::string>> ids = PreferredShares(available, required, size);
  EXPECT_TRUE(ids) << ids.error().text();
  return ids ? *ids : std::vector<std::string>();
}
std::string Refusal(const std::vector<std::string>& available, int size,
                    const std::vector<std::string>& required = {}) {
  Result<std::vector<std::string>> ids = PreferredShares(available, required, size);
  return ids ? "" : ids.error().text();
}
std::string Refusal(const std::vector<std::string>& ids) {
  Result<Allocation> allocation = AllocationOf(ids);
  return allocation ? "" : allocation.error().text();
}

TEST(KubernetesShares, an_id_names_a_gpu_and_a_number) {
  for (const char* gpu : {"GPU-fef8089b-4820-abfc-e83e-94318197576e", "0000:3b:00.0", "a::b", "cpu_0"}) {
    for (const int number : {0, 7, 99}) {
      const std::optional<Share> share = ReadShareId(IdOf({gpu, number}));
      ASSERT_TRUE(share) << gpu;
      EXPECT_EQ(share->gpu, gpu);
      EXPECT_EQ(share->number, number);
      EXPECT_LE(IdOf(*share).size(), kMaxDeviceId);
    }
  }
}

TEST(KubernetesShares, what_is_no_id_is_refused) {
  for (const std::string& id :
       {std::string(), std::string("a"), std::string("a::"), std::string("::1"), std::string("a::100"),
        std::string("a::-1"), std::string("a::01"), std::string("a::+1"), std::string("a:: 1"),
        std::string("a::1 "), std::string("a::1x"), std::string("a:::1"), std::string("a b::1"),
        std::string("a/b::1"), std::string("a::99999999999999999999"), std::string("ä::1"),
        std::string("a\0::1", 5), std::string("a::1\0", 5), std::string(60, 'a') + "::1"})
    EXPECT_FALSE(ReadShareId(id)) << id;
  EXPECT_NE(ProblemOfGpuId(std::string(60, 'a')), "");
  EXPECT_EQ(ProblemOfGpuId(std::string(59, 'a')), "");
}

// Whatever bytes come: it is refused, or it is exactly what is written for what was read.
TEST(KubernetesShares, random_ids_are_refused_or_read_as_they_are_written) {
  std::mt19937 random(1);
  const std::string alphabet("GPU-a0:1:29::\0\xff +./", 19);
  int read = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string id;
    for (size_t size = random() % 12; id.size() < size;) id += alphabet[random() % alphabet.size()];
    const std::optional<Share> share = ReadShareId(id);
    if (!share) continue;
    ++read;
    EXPECT_EQ(IdOf(*share), id);
  }
  EXPECT_GT(read, 0);
}

TEST(KubernetesShares, a_part_of_one_gpu_is_so_many_percent_of_it) {
  Result<Allocation> allocation = AllocationOf(SharesOf("GPU-a", 10, 40));
  ASSERT_TRUE(allocation);
  EXPECT_THAT(allocation->gpus, ElementsAre("GPU-a"));
  EXPECT_EQ(allocation->percent, 30);
}

TEST(KubernetesShares, whole_gpus_are_all_of_each) {
  Result<Allocation> allocation = AllocationOf(SharesOf("GPU-b", 0, 100) + SharesOf("GPU-a", 0, 100));
  ASSERT_TRUE(allocation);
  EXPECT_THAT(allocation->gpus, ElementsAre("GPU-a", "GPU-b"));
  EXPECT_EQ(allocation->percent, 100);
}

TEST(KubernetesShares, parts_of_several_gpus_are_refused) {
  EXPECT_THAT(Refusal(SharesOf("GPU-a", 0, 30) + SharesOf("GPU-b", 0, 20)),
              HasSubstr("50 shares would be parts of several GPUs (GPU-a: 30, GPU-b: 20)"));
  EXPECT_THAT(Refusal(SharesOf("GPU-a", 0, 100) + SharesOf("GPU-b", 0, 50)), HasSubstr("150 shares"));
  EXPECT_THAT(Refusal({}), HasSubstr("no share"));
  EXPECT_THAT(Refusal({"GPU-a::1", "GPU-a::1"}), HasSubstr("named twice"));
  EXPECT_THAT(Refusal({"GPU-a::1", "bad"}), HasSubstr("bad is no share of a GPU"));
}

TEST(KubernetesShares, a_container_gets_the_gpu_that_has_least_left_and_enough) {
  const auto available = SharesOf("GPU-a", 0, 100) + SharesOf("GPU-b", 60, 100) + SharesOf("GPU-c", 80, 100);
  EXPECT_EQ(Preferred(available, 20), SharesOf("GPU-c", 80, 100));
  EXPECT_EQ(Preferred(available, 30), SharesOf("GPU-b", 60, 90));
  EXPECT_EQ(Preferred(available, 50), SharesOf("GPU-a", 0, 50));
}

TEST(KubernetesShares, what_must_be_in_it_says_which_gpu) {
  const auto available = SharesOf("GPU-a", 0, 100) + SharesOf("GPU-b", 60, 100);
  EXPECT_EQ(Preferred(available, 3, {"GPU-a::50"}),
            (std::vector<std::string>{"GPU-a::50", "GPU-a::0", "GPU-a::1"}));
  EXPECT_THAT(Refusal(available, 50, {"GPU-b::70"}), HasSubstr("no GPU of this node has 50 % left"));
  EXPECT_THAT(Refusal(available, 50, {"GPU-a::1", "GPU-b::70"}), HasSubstr("no GPU"));
  EXPECT_THAT(Refusal(available, 50, {"GPU-b::1"}), HasSubstr("not possible"));
}

TEST(KubernetesShares, more_than_one_gpu_is_whole_gpus) {
  const auto available = SharesOf("GPU-a", 0, 100) + SharesOf("GPU-b", 60, 100) + SharesOf("GPU-c", 0, 100);
  EXPECT_EQ(Preferred(available, 200), SharesOf("GPU-a", 0, 100) + SharesOf("GPU-c", 0, 100));
  EXPECT_THAT(Refusal(available, 300),
              HasSubstr("3 whole GPUs are not free on this node (GPU-a: 100, GPU-b: 40, GPU-c: 100)"));
  EXPECT_THAT(Refusal(available, 150), HasSubstr("a multiple of 100"));
  const auto four = available + SharesOf("GPU-d", 0, 100);
  EXPECT_EQ(Preferred(four, 200, {"GPU-d::3"}), SharesOf("GPU-d", 0, 100) + SharesOf("GPU-a", 0, 100));
}

TEST(KubernetesShares, a_gpu_without_enough_left_is_named_with_what_it_has) {
  EXPECT_THAT(Refusal(SharesOf("GPU-a", 0, 50) + SharesOf("GPU-b", 0, 50), 60),
              HasSubstr("no GPU of this node has 60 % left (GPU-a: 50, GPU-b: 50)"));
  EXPECT_THAT(Refusal({}, 1), HasSubstr("(none)"));
  for (const int size : {0, -1})
    EXPECT_THAT(Refusal(SharesOf("GPU-a", 0, 1), size), HasSubstr("not possible"));
  EXPECT_THAT(Refusal({"x"}, 1), HasSubstr("x is no share"));
}

// Whatever is preferred can be allocated, and has what was asked for.
TEST(KubernetesShares, what_is_preferred_is_allocated) {
  std::mt19937 random(2);
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::string> available;
    for (const char* gpu : {"a", "b", "c"}) {
      const int left = static_cast<int>(random() % 3) == 0 ? kSharesOfGpu : static_cast<int>(random() % 101);
      available = available + SharesOf(gpu, kSharesOfGpu - left, kSharesOfGpu);
    }
    const int size = 1 + static_cast<int>(random() % 300);
    Result<std::vector<std::string>> ids = PreferredShares(available, {}, size);
    if (!ids) continue;
    EXPECT_EQ(ids->size(), static_cast<size_t>(size));
    EXPECT_EQ(Refusal(*ids), "");
  }
}

}  // namespace
}  // namespace xsched::kubernetes
