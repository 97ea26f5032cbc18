// A driver library for tests: the functions that device_info.cc loads, answering what the
// environment variable H3RT_TEST_DRIVER says. It stands in for libcuda.so.1 on machines without a
// GPU, so that the enumeration itself is tested and not only the faked list.
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

bool Mode(const char* mode) {
  const char* value = std::getenv("H3RT_TEST_DRIVER");
  return value != nullptr && std::strcmp(value, mode) == 0;
}

}  // namespace

extern "C" {

int cuInit(unsigned int flags);
int cuDriverGetVersion(int* version);
int cuDeviceGetCount(int* count);
int cuDeviceGetName(char* name, int size, int device);
int cuDeviceGetAttribute(int* value, int attribute, int device);
int cuDeviceTotalMem_v2(size_t* bytes, int device);
int cuGetErrorName(int error, const char** name);

int cuInit(unsigned int flags) {
  if (flags != 0) return 1;
  if (Mode("no device")) return 100;
  if (Mode("mismatch")) return 803;
  return 0;
}

int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}

int cuDeviceGetCount(int* count) {
  *count = Mode("empty") ? 0 : 2;
  return 0;
}

int cuDeviceGetName(char* name, int size, int device) {
  std::snprintf(name, static_cast<size_t>(size), device == 0 ? "Test H200" : "Test GB10");
  return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
  if (Mode("lost") && device == 1) return 999;
  // Attributes 75 and 76 are the capability's halves, 18 says integrated.
  constexpr int kAnswers[2][3] = {{9, 0, 0}, {12, 1, 1}};
  if (attribute != 75 && attribute != 76 && attribute != 18) return 1;
  *value = kAnswers[device == 0 ? 0 : 1][attribute == 18 ? 2 : attribute - 75];
  return 0;
}

int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  *bytes = device == 0 ? 150754820096ull : 128000000000ull;
  return 0;
}

int cuGetErrorName(int error, const char** name) {
  if (error == 803) {
    *name = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH";
  } else if (error == 999) {
    *name = "CUDA_ERROR_UNKNOWN";
  } else {
    return 1;
  }
  return 0;
}

}  // extern "C"
