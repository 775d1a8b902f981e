// A TCP socket that takes 20 s to close: it has data that its peer does not take.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <utility>
#include <vector>

#include "base/fd.h"

namespace xsched::server::testing {

class LingeringSocket {
 public:
  LingeringSocket() {
    const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener.get(), 1), 0);
    EXPECT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    socket_.Reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    peer_.Reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::vector<char> data(65536);
    while (send(socket_.get(), data.data(), data.size(), MSG_DONTWAIT) > 0) {
    }
    const linger lasts{1, 20};
    EXPECT_EQ(setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &lasts, sizeof lasts), 0);
  }
  ~LingeringSocket() { LetGo(); }
  LingeringSocket(const LingeringSocket&) = delete;
  LingeringSocket& operator=(const LingeringSocket&) = delete;

  int fd() const { return socket_.get(); }
  UniqueFd Release() { return std::move(socket_); }
  // Closing it takes no longer from now on.
  void LetGo() { peer_.Reset(); }

 private:
  UniqueFd peer_;
  UniqueFd socket_;  // closed first
};

}  // namespace xsched::server::testing
