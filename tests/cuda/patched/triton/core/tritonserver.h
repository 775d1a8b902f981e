// What the patch uses of Triton's errors.
#pragma once

#include <string>

struct TRITONSERVER_Error {
  std::string text;
};
enum TRITONSERVER_Error_Code { TRITONSERVER_ERROR_INTERNAL };

inline TRITONSERVER_Error* TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code, const char* text) {
  return new TRITONSERVER_Error{text};
}
