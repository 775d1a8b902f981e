// The record of the requests about queues, and the faults that a test has ordered. Not thread-safe.
#pragma once

#include <map>
#include <string>
#include <utility>

namespace standin_amdgpu {

class Requests {
 public:
  struct Fault {
    int error = 0;  // 0: none
    bool takes_effect = false;
  };

  // As standin_amdgpu_fail says.
  void Fail(unsigned number, int nth, int count, Fault fault);
  // For the request that is made now.
  Fault NextFault(unsigned number);

  // A line for a request that has been answered, as standin_amdgpu_take_record says.
  void Record(unsigned number, const void* argument, int error);
  std::string TakeRecord() { return std::exchange(lines_, {}); }

 private:
  struct Order {
    int until = 0;
    int count = 0;
    Fault fault;
  };

  std::map<unsigned, Order> orders_;
  std::string lines_;
};

}  // namespace standin_amdgpu
