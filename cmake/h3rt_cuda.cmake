# Device code: ahead of time, one real architecture a target, ptxas's report kept beside each object.
# Included when H3RT_CUDA is on.

set(H3RT_CUDA_TARGETS 90a 120a 121a CACHE STRING
  "Architectures of device code; one alone builds faster, but then the resource budget is not tested")
if(H3RT_SANITIZE)
  message(FATAL_ERROR "H3RT_CUDA and H3RT_SANITIZE do not go together: nvcc passes no host sanitizer")
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)
if(NOT CMAKE_CUDA_COMPILER)
  find_program(H3RT_NVCC nvcc HINTS ENV CUDA_PATH PATHS /usr/local/cuda/bin PATH_SUFFIXES bin)
  if(NOT H3RT_NVCC)
    message(FATAL_ERROR "H3RT_CUDA: nvcc was not found; install CUDA 13 or set CUDACXX")
  endif()
  set(CMAKE_CUDA_COMPILER ${H3RT_NVCC})
endif()
list(TRANSFORM H3RT_CUDA_TARGETS APPEND "-real" OUTPUT_VARIABLE CMAKE_CUDA_ARCHITECTURES)
set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13.0)
  message(FATAL_ERROR "H3RT_CUDA: nvcc ${CMAKE_CUDA_COMPILER_VERSION} is too old, wanted 13.0 or "
    "newer [${CMAKE_CUDA_COMPILER}]")
endif()
# CMake 3.25 does not know that nvcc 13 takes -std=c++20.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
find_package(CUDAToolkit REQUIRED)

# Saves what ptxas says about registers and spills as <object>.ptxas; the resource test reads it.
set(CMAKE_CUDA_COMPILER_LAUNCHER ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/keep_ptxas_report)

# Not compressed, so that a program can say which machine code it holds.
add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:${H3RT_DEVICE_OPTIONS};-no-compress>")
