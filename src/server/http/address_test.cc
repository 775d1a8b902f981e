#include "server/http/address.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/fd.h"

namespace xsched::server::http {
namespace {

class AddressTest : public ::testing::Test {
 protected:
  AddressTest() {
    char name[] = "/tmp/xsched-address-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~AddressTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(AddressTest, a_number_is_a_port_and_what_has_a_slash_a_path) {
  EXPECT_EQ(ParseAddress("9470")->port, 9470);
  EXPECT_EQ(TextOf(*ParseAddress("9470")), "127.0.0.1:9470");
  EXPECT_EQ(ParseAddress("./s")->path, "./s");
  for (const char* wrong : {"", "0", "65536", "-1", "9470x", "localhost", "0.0.0.0:80"})
    EXPECT_FALSE(ParseAddress(wrong)) << wrong;
}

TEST_F(AddressTest, a_unix_socket_has_its_mode_from_the_beginning) {
  const Address address{0, folder_ / "s"};
  const UniqueFd listening(ListenAt(address, 0660));
  struct stat status {};
  ASSERT_EQ(stat(address.path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0660u);
}

TEST_F(AddressTest, what_a_dead_server_left_is_replaced_and_a_living_one_is_not) {
  const Address address{0, folder_ / "s"};
  UniqueFd first(ListenAt(address, 0600));
  EXPECT_THROW(ListenAt(address, 0600), std::runtime_error);
  first.Reset();
  EXPECT_NO_THROW(first.Reset(ListenAt(address, 0600)));
}

TEST_F(AddressTest, a_file_that_is_no_socket_stays) {
  const Address address{0, folder_ / "s"};
  std::ofstream(address.path) << "mine";
  EXPECT_THROW(ListenAt(address, 0600), std::runtime_error);
  EXPECT_TRUE(std::filesystem::is_regular_file(address.path));
}

TEST_F(AddressTest, a_path_that_is_too_long_is_refused) {
  EXPECT_THROW(ListenAt({0, folder_ / std::string(200, 'x')}, 0600), std::runtime_error);
}

}  // namespace
}  // namespace xsched::server::http
