#include "h3rt/kernels/attention/exact/views.h"

#include <string>

#include "h3rt/kernels/attention/exact/check.h"

namespace h3rt {
namespace {

constexpr char kWhere[] = "exact attention";

absl::Status Refuse(const char* name, const char* part, std::string got, std::string wanted) {
  return InvalidArgument({.what = std::string(part) + " of " + name,
                          .got = std::move(got),
                          .wanted = std::move(wanted),
                          .where = kWhere});
}

absl::Status CheckView(const char* name, const ConstTensorView& view, DType dtype) {
  if (view.rank() != 4) return Refuse(name, "rank", std::to_string(view.rank()), "4");
  if (view.dtype() != dtype) {
    return Refuse(name, "dtype", std::string(NameOf(view.dtype())),
                  std::string(NameOf(dtype)) + ", as q has");
  }
  if (view.dim(3) > 1 && view.stride(3) != 1) {
    return Refuse(name, "last stride", std::to_string(view.stride(3)), "1");
  }
  return absl::OkStatus();
}

absl::Status CheckExtent(const char* name, const ConstTensorView& view, int dimension,
                         int64_t wanted, const char* like) {
  if (view.dim(dimension) == wanted) return absl::OkStatus();
  return Refuse(name, "extent", std::to_string(view.dim(dimension)),
                std::to_string(wanted) + " in dimension " + std::to_string(dimension) + ", as " +
                    like + " has");
}

template <typename Strided, typename View>
Strided StridedOf(const View& view) {
  return {view.data(), view.stride(0), view.stride(1), view.stride(2)};
}

}  // namespace

absl::StatusOr<ExactProblem> ExactProblemOf(const ExactViews& views, const ExactProblem& options) {
  const DType dtype = views.q.dtype();
  if (dtype != DType::kBF16 && dtype != DType::kF16) {
    return Refuse("q", "dtype", std::string(NameOf(dtype)), "BF16 or F16");
  }
  const ConstTensorView o = views.o;
  H3RT_RETURN_IF_ERROR(CheckView("q", views.q, dtype));
  H3RT_RETURN_IF_ERROR(CheckView("k", views.k, dtype));
  H3RT_RETURN_IF_ERROR(CheckView("v", views.v, dtype));
  H3RT_RETURN_IF_ERROR(CheckView("o", o, dtype));
  for (const int dimension : {0, 1, 2, 3}) {
    H3RT_RETURN_IF_ERROR(CheckExtent("o", o, dimension, views.q.dim(dimension), "q"));
    H3RT_RETURN_IF_ERROR(CheckExtent("v", views.v, dimension, views.k.dim(dimension), "k"));
  }
  for (const int dimension : {0, 3}) {
    H3RT_RETURN_IF_ERROR(CheckExtent("k", views.k, dimension, views.q.dim(dimension), "q"));
  }
  ExactProblem p = options;
  p.type = dtype == DType::kBF16 ? ExactType::kBf16 : ExactType::kF16;
  p.batch = views.q.dim(0);
  p.q_len = views.q.dim(1);
  p.q_heads = views.q.dim(2);
  p.head_dim = views.q.dim(3);
  p.k_len = views.k.dim(1);
  p.k_heads = views.k.dim(2);
  p.q = StridedOf<ExactInput>(views.q);
  p.k = StridedOf<ExactInput>(views.k);
  p.v = StridedOf<ExactInput>(views.v);
  p.o = StridedOf<ExactOutput>(views.o);
  if (p.sm_scale == 0.0f && p.head_dim > 0) p.sm_scale = DefaultSmScale(p.head_dim);
  H3RT_RETURN_IF_ERROR(CheckExactProblem(p));
  return p;
}

}  // namespace h3rt
