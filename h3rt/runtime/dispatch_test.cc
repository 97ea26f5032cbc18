#include "h3rt/runtime/dispatch.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "h3rt/kernels/activation/activation.h"
#include "h3rt/kernels/attention/attention.h"
#include "h3rt/kernels/conv/conv.h"
#include "h3rt/kernels/linear/linear.h"
#include "h3rt/kernels/modulate/modulate.h"
#include "h3rt/kernels/norm/norm.h"
#include "h3rt/kernels/rope/rope.h"

namespace h3rt {
namespace {

// A problem of one or two elements for every op, with its right answer.
struct Probe {
  std::vector<float> result;
  absl::Status status;
};

Probe ProbeLinear(const ExecContext& c) {
  const float x[] = {1, 2};
  const float w[] = {3, 4};
  std::vector<float> y(1);
  const absl::Status s = Linear({.x = ConstTensorView::Of(x, {1, 2}),
                                 .weight = ConstTensorView::Of(w, {1, 2}),
                                 .bias = {},
                                 .y = TensorView::Of(y.data(), {1, 1})},
                                c);
  return Probe{y, s};
}

Probe ProbeAttention(const ExecContext& c) {
  const float q[] = {1};
  const float v[] = {11};
  std::vector<float> o(1);
  const absl::Status s = Attention({.q = ConstTensorView::Of(q, {1, 1, 1}),
                                    .k = ConstTensorView::Of(q, {1, 1, 1}),
                                    .v = ConstTensorView::Of(v, {1, 1, 1}),
                                    .o = TensorView::Of(o.data(), {1, 1, 1})},
                                   c);
  return Probe{o, s};
}

Probe ProbeConv(const ExecContext& c) {
  const float x[] = {11};
  const float w[] = {1};
  std::vector<float> y(1);
  const absl::Status s = Conv3d({.x = ConstTensorView::Of(x, {1, 1, 1, 1}),
                                 .weight = ConstTensorView::Of(w, {1, 1, 1, 1, 1}),
                                 .bias = {},
                                 .y = TensorView::Of(y.data(), {1, 1, 1, 1})},
                                c);
  return Probe{y, s};
}

Probe ProbeNorm(const ExecContext& c) {
  const float x[] = {5};
  const float w[] = {11};
  std::vector<float> y(1);
  const absl::Status s = RmsNorm({.x = ConstTensorView::Of(x, {1, 1}),
                                  .weight = ConstTensorView::Of(w, {1}),
                                  .y = TensorView::Of(y.data(), {1, 1}),
                                  .eps = 0},
                                 c);
  return Probe{y, s};
}

Probe ProbeRope(const ExecContext& c) {
  std::vector<float> x = {11, 0};
  const float one[] = {1};
  const float zero[] = {0};
  const absl::Status s = Rope({.x = TensorView::Of(x.data(), {1, 1, 2}),
                               .cos = ConstTensorView::Of(one, {1, 1}),
                               .sin = ConstTensorView::Of(zero, {1, 1})},
                              c);
  return Probe{{x[0]}, s};
}

Probe ProbeModulate(const ExecContext& c) {
  const float x[] = {5};
  const float one[] = {1};
  const std::vector<int32_t> row = {0};
  std::vector<float> y(1);
  const absl::Status s = Modulate({.x = ConstTensorView::Of(x, {1, 1}),
                                   .shift = ConstTensorView::Of(one, {1, 1}),
                                   .scale = ConstTensorView::Of(one, {1, 1}),
                                   .row = row,
                                   .y = TensorView::Of(y.data(), {1, 1})},
                                  c);
  return Probe{y, s};
}

Probe ProbeActivation(const ExecContext& c) {
  const float x[] = {11};
  const float alpha[] = {0};
  std::vector<float> y(1);
  // At alpha 0 the sine vanishes and snake is the identity.
  const absl::Status s = Snake({.x = ConstTensorView::Of(x, {1, 1}),
                                .alpha = ConstTensorView::Of(alpha, {1}),
                                .y = TensorView::Of(y.data(), {1, 1})},
                               c);
  return Probe{y, s};
}

const std::map<std::string, Probe (*)(const ExecContext&)>& Probes() {
  static const std::map<std::string, Probe (*)(const ExecContext&)> probes = {
      {"linear", ProbeLinear},
      {"attention", ProbeAttention},
      {"conv", ProbeConv},
      {"norm", ProbeNorm},
      {"rope", ProbeRope},
      {"modulate", ProbeModulate},
      {"activation", ProbeActivation},
  };
  return probes;
}

TEST(OpTable, EveryEntryRunsUnderItsName) {
  ThreadPool pool(1);
  for (const OpImplementations& row : OpTable()) {
    ASSERT_EQ(Probes().count(row.op), 1u) << row.op;
    for (const char* name : row.names) {
      const ImplChoice choice = {{row.op, name}};
      const Probe probe = Probes().at(row.op)({.pool = &pool, .cancel = nullptr, .impls = &choice});
      ASSERT_TRUE(probe.status.ok()) << row.op << "=" << name << ": " << probe.status;
      EXPECT_EQ(probe.result[0], 11.0f) << row.op << "=" << name;
    }
  }
  EXPECT_EQ(Probes().size(), OpTable().size());
}

// The op's own message lists its implementations: the table has all of them, in that order.
TEST(OpTable, MissesNoImplementation) {
  ThreadPool pool(1);
  for (const OpImplementations& row : OpTable()) {
    const ImplChoice choice = {{row.op, "no-such"}};
    const Probe probe = Probes().at(row.op)({.pool = &pool, .cancel = nullptr, .impls = &choice});
    EXPECT_EQ(probe.status.code(), absl::StatusCode::kInvalidArgument) << row.op;
    std::string list = "one of ";
    for (size_t i = 0; i < row.names.size(); ++i)
      list += (i > 0 ? ", " : "") + std::string(row.names[i]);
    EXPECT_TRUE(MessageOf(probe.status).ends_with(list))
        << row.op << ": " << probe.status << ", the table says " << list;
  }
}

TEST(ParseImplChoice, TakesWhatExistsAndNamesTheRest) {
  const auto good = ParseImplChoice({"attention=ref", "linear=onednn"});
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(good->at("attention"), "ref");
  for (const char* bad :
       {"attention", "=ref", "attention=", "nonsense=ref", "attention=nonsense"}) {
    const auto choice = ParseImplChoice({bad});
    EXPECT_EQ(choice.status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_EQ(ParseImplChoice({"rope=ref", "rope=cpu"}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace h3rt
