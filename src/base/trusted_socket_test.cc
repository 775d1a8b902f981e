#include "base/trusted_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/fd.h"

namespace xsched {
namespace {

class TrustedSocket : public testing::Test {
 protected:
  TrustedSocket() {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/control";
  }
  ~TrustedSocket() override { std::filesystem::remove_all(folder_); }

  void Bind() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }

  std::string folder_ = std::filesystem::temp_directory_path() / "trusted_socket_XXXXXX";
  std::string path_;
};

TEST_F(TrustedSocket, a_users_own_socket_is_trusted) {
  Bind();
  EXPECT_TRUE(IsTrustedSocket(path_.c_str()));
}

TEST_F(TrustedSocket, another_users_socket_is_not) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to give a file to another user";
  constexpr uid_t kAnother = 12345;
  Bind();
  if (chown(path_.c_str(), kAnother, static_cast<gid_t>(-1)) != 0)
    GTEST_SKIP() << "there is no such user here";
  EXPECT_FALSE(IsTrustedSocket(path_.c_str()));
}

TEST_F(TrustedSocket, what_is_no_socket_is_not) {
  EXPECT_FALSE(IsTrustedSocket(path_.c_str()));
  std::ofstream(path_) << "";
  EXPECT_FALSE(IsTrustedSocket(path_.c_str()));
}

TEST_F(TrustedSocket, a_link_to_a_socket_is_not) {
  Bind();
  const std::string link = folder_ + "/link";
  std::filesystem::create_symlink(path_, link);
  EXPECT_FALSE(IsTrustedSocket(link.c_str()));
}

}  // namespace
}  // namespace xsched
