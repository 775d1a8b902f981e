// A rule of a real driver that a stand-in obeys. Each stand-in has one list of them, and a test of each.
#pragma once

namespace standin {

struct DriverRule {
  const char* name;
  const char* says;
  const char* source;
  const char* file;  // where it is implemented
};

}  // namespace standin
