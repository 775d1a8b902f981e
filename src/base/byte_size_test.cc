#include "base/byte_size.h"

#include <gtest/gtest.h>

namespace xsched {
namespace {

TEST(ByteSize, is_a_number_with_a_unit) {
  EXPECT_EQ(ReadByteSize("1500000"), 1'500'000u);
  EXPECT_EQ(ReadByteSize("20GiB"), uint64_t{20} << 30);
  EXPECT_EQ(ReadByteSize("20g"), uint64_t{20} << 30);
  EXPECT_EQ(ReadByteSize("512MiB"), uint64_t{512} << 20);
  EXPECT_EQ(ReadByteSize("80GB"), uint64_t{80} * 1000 * 1000 * 1000);
  EXPECT_EQ(ReadByteSize("1TiB"), uint64_t{1} << 40);
}

TEST(ByteSize, of_nothing_or_of_something_else_is_none) {
  for (const char* text : {"", "0", "0GiB", "GiB", "-1", "+1", "1.5GiB", "20 GiB", "20GiBs", "20X", " 1",
                           "99999999999999999999", "200TiB", "18446744073709551617"})
    EXPECT_EQ(ReadByteSize(text), std::nullopt) << text;
  EXPECT_EQ(ReadByteSize(nullptr), std::nullopt);
}

}  // namespace
}  // namespace xsched
