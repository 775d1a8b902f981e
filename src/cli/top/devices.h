// The devices that top shows, and how much of their time was used, now and lately. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/top/history.h"
#include "cli/top/rates.h"
#include "cli/top/top_text.h"

namespace xsched::cli {

class Devices {
 public:
  // It remembers so many looks.
  explicit Devices(size_t looks) : looks_(looks) {}

  // What one more look saw.
  void Take(const std::vector<QueueRates>& queues, const std::vector<AccountRates>& accounts);
  // One for each device. Those with the same name also have their PCI addresses, or their numbers.
  std::vector<std::string> Lines(const TopStyle& style) const;

 private:
  struct Device {
    std::string name;
    std::set<std::string> platforms;
    double share = 0;
    History history;
  };

  Device& At(uint64_t number, const char* name);

  const size_t looks_;
  std::map<uint64_t, Device> devices_;  // by number, which is the same on every platform
};

}  // namespace xsched::cli
