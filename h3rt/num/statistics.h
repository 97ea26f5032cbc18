// Statistics that give the same bits on every IEEE machine: + - * / and square roots alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace h3rt {

// Logarithm and exponential from + - * / alone: every IEEE machine gives the same bits, which libm
// does not promise, and the integers in documents are rounded from these. Error below 4e-16.
double PlainLog(double value);
double PlainExp(double value);
// splitmix64: the next value of a state.
uint64_t NextRandom(uint64_t& state);

double MeanOf(std::span<const double> values);  // 0 of none
// Of a sample: n - 1; 0 below two values.
double Deviation(std::span<const double> values);
double Median(std::vector<double> values);
// Linear interpolation between order statistics, q in [0, 1].
double Quantile(std::vector<double> values, double q);
// Inverse of Student's t distribution with `degrees` degrees of freedom (infinite below 1). By
// bisection of the regularised incomplete beta function, whose continued fraction is DLMF 8.17.22.
double StudentQuantile(double probability, int64_t degrees);

struct Interval {
  double low = 0;
  double high = 0;
};
// Exact (binomial) interval of the median by order statistics, coverage at least `confidence`;
// infinite where so few values cannot have that coverage.
Interval ExactMedianInterval(std::vector<double> values, double confidence);
// t interval of the mean; infinite below two values.
Interval MeanInterval(std::span<const double> values, double confidence);
// Two-stage bootstrap (processes, then quads within) of the mean of process medians; percentile
// interval. Deterministic in `seed`.
Interval ClusterBootstrap(const std::vector<std::vector<double>>& processes, double confidence,
                          int64_t repeats, uint64_t seed);
double LagOneAutocorrelation(std::span<const double> values);
// Theil-Sen slope over the index, times the length: the drift over the run, relative to the median.
// More than 1,024 values are reduced to 1,024 medians of neighbours first.
double RelativeDrift(std::span<const double> values);

}  // namespace h3rt
