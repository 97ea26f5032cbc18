# h3rt_library, h3rt_test, h3rt_bench: every library states its floor, and an upward or sideways
# dependency stops the configuration. tools/check_layers reads the includes for the same rule.

set(H3RT_WARNINGS -Wall -Wextra -Wconversion -Wshadow -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 reports overlapping copies inside std::string's own operator+ (its bug 105651).
  list(APPEND H3RT_WARNINGS -Wno-restrict)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # clang counts changes of sign to -Wconversion, g++ does not in C++.
  list(APPEND H3RT_WARNINGS -Wno-sign-conversion)
endif()

# Of device code, beside those of the build type. The laboratory compiles with the same.
set(H3RT_DEVICE_OPTIONS -Xptxas=-v -Werror=all-warnings
  -Xcompiler=-Wall,-Wextra,-Werror,-ffp-contract=off)
# All of them in one line, of this build or, without CUDA, of a release build.
function(h3rt_device_flags variable)
  set(flags "-O3 -DNDEBUG")
  if(H3RT_CUDA)
    string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
    set(flags "${CMAKE_CUDA_FLAGS} ${CMAKE_CUDA_FLAGS_${type}}")
  endif()
  list(JOIN H3RT_DEVICE_OPTIONS " " options)
  string(STRIP "${flags} -std=c++20 ${options}" flags)
  set(${variable} "${flags}" PARENT_SCOPE)
endfunction()

function(h3rt_common_options target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
  # Results are defined operation by operation: the compiler may not fuse a*b+c on its own.
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:${H3RT_WARNINGS};-ffp-contract=off;-fno-math-errno>)
  if(H3RT_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${H3RT_SANITIZE}
      -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${H3RT_SANITIZE})
  endif()
endfunction()

# h3rt_library(NAME h3rt_num FLOOR 1 SRCS ... DEPS ... EXTERNAL ...)
# DEPS are h3rt targets of a lower floor; EXTERNAL are packages.
function(h3rt_library)
  cmake_parse_arguments(L "INTERFACE" "NAME;FLOOR" "SRCS;DEPS;EXTERNAL" ${ARGN})
  if(NOT DEFINED L_FLOOR)
    message(FATAL_ERROR "h3rt_library(${L_NAME}): FLOOR is missing")
  endif()
  foreach(dep IN LISTS L_DEPS)
    if(NOT TARGET ${dep})
      message(FATAL_ERROR "h3rt_library(${L_NAME}): dependency ${dep} is not declared yet; "
        "libraries are declared from the ground floor up")
    endif()
    get_target_property(dep_floor ${dep} H3RT_FLOOR)
    if(NOT dep_floor LESS L_FLOOR)
      message(FATAL_ERROR "h3rt_library(${L_NAME}): floor ${L_FLOOR} may not depend on ${dep} "
        "of floor ${dep_floor}; include only downward")
    endif()
  endforeach()
  add_library(${L_NAME} STATIC ${L_SRCS})
  set_target_properties(${L_NAME} PROPERTIES H3RT_FLOOR ${L_FLOOR} POSITION_INDEPENDENT_CODE ON)
  h3rt_common_options(${L_NAME})
  target_link_libraries(${L_NAME} PUBLIC ${L_DEPS} ${L_EXTERNAL})
  if(L_SRCS MATCHES "[.]cu(;|$)")
    add_dependencies(h3rt_device_code ${L_NAME})
  endif()
endfunction()

# h3rt_test(NAME num_test SRCS ... DEPS ... [TIMEOUT seconds] [LIGHT]): one GoogleTest program a folder;
# every case is a ctest test. LIGHT: the test's own code computes little, so a release build compiles it
# with -O1, in two thirds of the time; what it tests is optimised as ever.
function(h3rt_test)
  cmake_parse_arguments(T "LIGHT" "NAME;TIMEOUT" "SRCS;DEPS" ${ARGN})
  if(NOT H3RT_TESTS)
    return()
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 300)
  endif()
  add_executable(${T_NAME} ${T_SRCS})
  h3rt_common_options(${T_NAME})
  if(T_LIGHT)
    target_compile_options(${T_NAME} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  target_compile_definitions(${T_NAME} PRIVATE
    H3RT_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    H3RT_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  target_link_libraries(${T_NAME} PRIVATE ${T_DEPS} GTest::gmock GTest::gtest_main)
  gtest_discover_tests(${T_NAME} TEST_PREFIX ${T_NAME}. DISCOVERY_TIMEOUT 120
    PROPERTIES TIMEOUT ${T_TIMEOUT})
endfunction()

# h3rt_bench(NAME ... SRCS ... DEPS ...): a Google Benchmark program; built by `make bench` only.
function(h3rt_bench)
  cmake_parse_arguments(B "" "NAME" "SRCS;DEPS" ${ARGN})
  find_package(benchmark QUIET)
  if(NOT benchmark_FOUND)
    return()
  endif()
  add_executable(${B_NAME} EXCLUDE_FROM_ALL ${B_SRCS})
  h3rt_common_options(${B_NAME})
  target_compile_definitions(${B_NAME} PRIVATE H3RT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${B_NAME} PRIVATE ${B_DEPS} benchmark::benchmark)
  add_dependencies(h3rt_benchmarks ${B_NAME})
endfunction()

# h3rt_fuzzer(NAME io_safetensors_fuzz SRCS ... DEPS ... CORPUS folder): LLVMFuzzerTestOneInput over a
# committed corpus. With H3RT_FUZZ a libFuzzer program, part of h3rt_fuzzers; otherwise a test that
# feeds it every file of the corpus once, so the corpus is proved in every build.
function(h3rt_fuzzer)
  cmake_parse_arguments(F "" "NAME;CORPUS" "SRCS;DEPS" ${ARGN})
  get_filename_component(corpus ${F_CORPUS} ABSOLUTE)
  if(H3RT_FUZZ)
    add_executable(${F_NAME} EXCLUDE_FROM_ALL ${F_SRCS})
    target_link_options(${F_NAME} PRIVATE -fsanitize=fuzzer)
    add_dependencies(h3rt_fuzzers ${F_NAME})
    file(APPEND ${PROJECT_BINARY_DIR}/fuzzers.txt
      "${CMAKE_CURRENT_BINARY_DIR}/${F_NAME}\t${corpus}\n")
  elseif(H3RT_TESTS)
    add_executable(${F_NAME} ${F_SRCS} ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cc)
    add_test(NAME fuzz.${F_NAME}_corpus COMMAND ${F_NAME} ${corpus})
    set_tests_properties(fuzz.${F_NAME}_corpus PROPERTIES TIMEOUT 120)
  else()
    return()
  endif()
  h3rt_common_options(${F_NAME})
  target_link_libraries(${F_NAME} PRIVATE ${F_DEPS})
endfunction()
