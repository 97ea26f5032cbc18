#include "h3rt/harness/cubin.h"

#include <cxxabi.h>

#include <cstdlib>
#include <set>
#include <span>

#include "h3rt/base/file.h"
#include "h3rt/base/hash.h"
#include "h3rt/lab/scan.h"

namespace h3rt::lab {
namespace {

constexpr std::string_view kMagic =
    "\x7f"
    "ELF\x02\x01\x01";
constexpr uint64_t kCudaMachine = 190;
constexpr uint64_t kNoBits = 8;
constexpr uint64_t kSectionBytes = 64;

// Little-endian integers at any place; nothing beyond the end.
struct Bytes {
  std::string_view text;
  bool Has(uint64_t at, uint64_t size) const {
    return at <= text.size() && size <= text.size() - at;
  }
  uint64_t Int(uint64_t at, int size) const {
    uint64_t value = 0;
    for (int i = size - 1; i >= 0; --i) {
      value = value << 8 | static_cast<unsigned char>(text[at + static_cast<uint64_t>(i)]);
    }
    return value;
  }
};

struct Section {
  std::string_view name, bytes;
};

bool ReadSections(const Bytes& file, std::vector<Section>& sections) {
  const uint64_t table = file.Int(0x28, 8), size = file.Int(0x3a, 2), count = file.Int(0x3c, 2);
  const uint64_t names = file.Int(0x3e, 2);
  if (size != kSectionBytes || names >= count || !file.Has(table, count * size)) return false;
  const auto part = [&](uint64_t index, std::string_view& bytes) {
    const uint64_t at = table + index * size;
    const uint64_t offset = file.Int(at + 0x18, 8);
    const uint64_t length = file.Int(at + 4, 4) == kNoBits ? 0 : file.Int(at + 0x20, 8);
    if (!file.Has(offset, length)) return false;
    bytes = file.text.substr(offset, length);
    return true;
  };
  std::string_view strings;
  if (!part(names, strings)) return false;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t name = file.Int(table + i * size, 4);
    const size_t end = name < strings.size() ? strings.find('\0', name) : std::string_view::npos;
    Section section;
    if (end == std::string_view::npos || !part(i, section.bytes)) return false;
    section.name = strings.substr(name, end - name);
    sections.push_back(section);
  }
  return true;
}

// The block size that the kernel was bounded to: attribute 5 of its .nv.info, three dimensions.
int64_t MaxThreads(std::string_view info) {
  const Bytes bytes{info};
  for (uint64_t at = 0; bytes.Has(at, 4);) {
    const uint64_t format = bytes.Int(at, 1), attribute = bytes.Int(at + 1, 1);
    const uint64_t length = format == 4 ? bytes.Int(at + 2, 2) : 0;
    if (format == 4 && attribute == 5 && length >= 12 && bytes.Has(at + 4, 12)) {
      const uint64_t x = bytes.Int(at + 4, 4), y = bytes.Int(at + 8, 4), z = bytes.Int(at + 12, 4);
      const bool plain = x <= 1024 && y <= 1024 && z <= 1024;
      if (plain && x * y * z > 0 && x * y * z <= 1024) return static_cast<int64_t>(x * y * z);
    }
    at += 4 + length;
  }
  return 1024;
}

std::string HexOf(std::string_view text) { return Sha256Hex(std::as_bytes(std::span(text))); }

}  // namespace

absl::StatusOr<Cubin> ParseCubin(std::string_view bytes, std::string_view where) {
  const Bytes file{bytes};
  const auto refuse = [&](const char* got) {
    return DataLoss({.what = "cubin", .got = got, .where = std::string(where)});
  };
  if (bytes.size() < kSectionBytes || bytes.substr(0, kMagic.size()) != kMagic) {
    return refuse("no 64-bit ELF file");
  }
  if (file.Int(0x12, 2) != kCudaMachine) return refuse("the code of another machine");
  std::vector<Section> sections;
  if (!ReadSections(file, sections)) return refuse("a damaged section table");
  Cubin cubin;
  cubin.architecture = static_cast<int64_t>(file.Int(0x30, 4) >> 8 & 0xff);
  std::map<std::string_view, std::string_view> by_name;
  for (const Section& section : sections) by_name.emplace(section.name, section.bytes);
  for (const Section& section : sections) {
    std::string_view symbol = section.name;
    if (!Take(symbol, ".text.") || !IsPrintable(symbol)) continue;
    CubinKernel kernel;
    kernel.symbol = symbol;
    const auto info = by_name.find(".nv.info." + kernel.symbol);
    const std::string bank = ".nv.constant0." + kernel.symbol;
    const auto constants = by_name.find(bank);
    if (constants == by_name.end()) continue;  // a function that kernels call
    kernel.code_sha256 = HexOf(section.bytes);
    kernel.code_bytes = static_cast<int64_t>(section.bytes.size());
    kernel.constant_bytes = static_cast<int64_t>(constants->second.size());
    if (info != by_name.end()) kernel.max_threads = MaxThreads(info->second);
    cubin.kernels.push_back(std::move(kernel));
  }
  return cubin;
}

KernelCode CodeOfKernels(const std::vector<CubinKernel>& kernels) {
  KernelCode code;
  std::map<std::string, std::set<std::string>> by_name;
  for (const CubinKernel& kernel : kernels) {
    code[kernel.symbol] = kernel.code_sha256;
    by_name[KernelName(kernel.symbol)].insert(kernel.code_sha256);
  }
  for (const auto& [name, digests] : by_name) {
    std::string all;
    for (const std::string& digest : digests) all += digest + "\n";
    code.emplace(name, digests.size() == 1 ? *digests.begin() : HexOf(all));
  }
  return code;
}

absl::StatusOr<KernelCode> KernelsOfProgram(const std::string& path, std::string_view target) {
  H3RT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, uint64_t{4} << 30));
  std::vector<CubinKernel> kernels;
  const std::string_view all = text;
  for (size_t at = all.find(kMagic, 1); at != std::string_view::npos;
       at = all.find(kMagic, at + kMagic.size())) {
    const absl::StatusOr<Cubin> cubin = ParseCubin(all.substr(at), path);
    if (!cubin.ok() || cubin->architecture != ArchitectureOf(target)) continue;
    kernels.insert(kernels.end(), cubin->kernels.begin(), cubin->kernels.end());
  }
  return CodeOfKernels(kernels);
}

int64_t ArchitectureOf(std::string_view target) {
  int64_t number = 0;
  if (!Take(target, "sm_") || !TakeNumber(target, number) || target.size() > 1) return 0;
  return number;
}

std::string KernelName(const std::string& symbol) {
  int status = 0;
  char* const demangled = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  if (!demangled) return symbol;
  std::string_view name = demangled;
  // "void h3rt::k<int>(int*)": what stands outside <> before the parameters, without a return type.
  std::string out;
  int depth = 0;
  while (!name.empty()) {
    if (depth == 0 && Take(name, "(anonymous namespace)")) {
      out += "(anonymous namespace)";
      continue;
    }
    const char c = name[0];
    name.remove_prefix(1);
    if (depth == 0 && c == '(') break;
    if (c == '>') --depth;
    if (depth == 0 && c == ' ') {
      out.clear();
    } else if (depth == 0 && c != '<' && c != '>') {
      out += c;
    }
    if (c == '<') ++depth;
  }
  std::free(demangled);
  return out;
}

}  // namespace h3rt::lab
