#include "rules.h"

#include <cstdlib>
#include <string>

namespace standin {

bool Obeys(const char* rule) {
  const char* without = std::getenv("STANDIN_CUDA_WITHOUT");
  if (without == nullptr) return true;
  const std::string list = std::string(",") + without + ",";
  return list.find(std::string(",") + rule + ",") == std::string::npos;
}

}  // namespace standin
