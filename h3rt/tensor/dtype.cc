#include "h3rt/tensor/dtype.h"

#include <array>

#include "h3rt/base/check.h"

namespace h3rt {
namespace {

struct Row {
  DType dtype;
  int64_t bytes;
  std::string_view name;
};

constexpr std::array<Row, 12> kTable = {{
    {DType::kF64, 8, "F64"},
    {DType::kF32, 4, "F32"},
    {DType::kF16, 2, "F16"},
    {DType::kBF16, 2, "BF16"},
    {DType::kE4M3, 1, "F8_E4M3"},
    {DType::kE5M2, 1, "F8_E5M2"},
    {DType::kI64, 8, "I64"},
    {DType::kI32, 4, "I32"},
    {DType::kI16, 2, "I16"},
    {DType::kI8, 1, "I8"},
    {DType::kU8, 1, "U8"},
    {DType::kBool, 1, "BOOL"},
}};

const Row& RowOf(DType dtype) {
  for (const Row& row : kTable) {
    if (row.dtype == dtype) return row;
  }
  CheckFailed(__FILE__, __LINE__, "every DType is in the table");
}

}  // namespace

int64_t SizeOf(DType dtype) { return RowOf(dtype).bytes; }

std::string_view NameOf(DType dtype) { return RowOf(dtype).name; }

std::optional<DType> DTypeFromName(std::string_view name) {
  for (const Row& row : kTable) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

}  // namespace h3rt
