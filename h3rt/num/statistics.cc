// Order statistics, intervals and the bootstrap; the logarithm they stand on.
#include "h3rt/num/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace h3rt {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kPi = 3.14159265358979323846;
// ln 2 in two parts: the first has 32 bits, so that its product with an exponent is exact.
constexpr double kLn2High = 6.93147180369123816490e-01;
constexpr double kLn2Low = 1.90821492927058770002e-10;
constexpr size_t kDriftPoints = 1024;

// The continued fraction of the incomplete beta function (DLMF 8.17.22) by Lentz's method.
double BetaFraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  auto away_from_zero = [](double value) { return std::fabs(value) < kTiny ? kTiny : value; };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double result = d;
  for (int m = 1; m <= 500; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    result *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    const double step = d * c;
    result *= step;
    if (std::fabs(step - 1) < 1e-16) break;
  }
  return result;
}

// P(T > t) for t >= 0: half of I_x(degrees / 2, 1 / 2) at x = degrees / (degrees + t^2).
double StudentTail(double t, int64_t degrees) {
  const double n = static_cast<double>(degrees);
  const double a = n / 2;
  const double b = 0.5;
  const double x = n / (n + t * t);
  const double y = t * t / (n + t * t);  // 1 - x without its cancellation
  if (x <= 0) return 0;
  if (y <= 0) return 0.5;
  // B(1/2, 1/2) = pi, B(1, 1/2) = 2, and B(a + 1, b) = B(a, b) a / (a + b).
  double beta = degrees % 2 == 1 ? kPi : 2;
  for (double at = degrees % 2 == 1 ? 0.5 : 1; at < a; at += 1) beta *= at / (at + b);
  const double front = PlainExp(a * PlainLog(x) + b * PlainLog(y)) / beta;
  if (x < (a + 1) / (a + b + 2)) return 0.5 * front * BetaFraction(a, b, x) / a;
  return 0.5 * (1 - front * BetaFraction(b, a, y) / b);
}

// The median of `count` draws with replacement from sorted values: counts, then a walk.
double ResampledMedian(const std::vector<double>& sorted, std::vector<int32_t>& counts,
                       uint64_t& state) {
  const uint64_t n = sorted.size();
  std::fill(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(n), 0);
  uint64_t word = 0;
  for (uint64_t i = 0; i < n; ++i) {
    word = i % 2 == 0 ? NextRandom(state) : word << 32;
    ++counts[static_cast<size_t>(((word >> 32) * n) >> 32)];
  }
  const auto lower = static_cast<int64_t>((n - 1) / 2);
  const auto upper = static_cast<int64_t>(n / 2);
  int64_t seen = 0;
  size_t at = 0;
  while ((seen += counts[at]) <= lower) ++at;
  const double low = sorted[at];
  while (seen <= upper) seen += counts[++at];
  return (low + sorted[at]) / 2;
}

double SquaresAround(std::span<const double> values, double centre) {
  double squares = 0;
  for (const double value : values) squares += (value - centre) * (value - centre);
  return squares;
}

}  // namespace

double PlainLog(double value) {
  if (!(value > 0)) return value == 0 ? -kInfinity : std::numeric_limits<double>::quiet_NaN();
  if (value == kInfinity) return kInfinity;
  int exponent = 0;
  double fraction = std::frexp(value, &exponent);  // exact
  if (fraction < 0.70710678118654752440) {
    fraction *= 2;
    --exponent;
  }
  // log((1 + s) / (1 - s)) = 2 (s + s^3 / 3 + ...), |s| < 0.1716: eleven terms reach 2^-55.
  const double s = (fraction - 1) / (fraction + 1);
  const double square = s * s;
  double sum = 0;
  for (int term = 23; term >= 3; term -= 2) sum = (sum + 1.0 / term) * square;
  const double high = exponent * kLn2High;
  return high + (2 * s + (2 * s * sum + exponent * kLn2Low));
}

double PlainExp(double value) {
  if (std::isnan(value)) return value;
  if (value > 709.7) return kInfinity;
  if (value < -744) return 0;
  const double power = std::floor(value * 1.44269504088896340736 + 0.5);
  const double rest = (value - power * kLn2High) - power * kLn2Low;
  double sum = 1;  // |rest| < 0.35: fourteen terms reach 2^-57
  for (int term = 14; term >= 1; --term) sum = 1 + sum * rest / term;
  return std::ldexp(sum, static_cast<int>(power));
}

uint64_t NextRandom(uint64_t& state) {
  uint64_t z = state += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

double MeanOf(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double Deviation(std::span<const double> values) {
  if (values.size() < 2) return 0;
  return std::sqrt(SquaresAround(values, MeanOf(values)) / static_cast<double>(values.size() - 1));
}

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double place = static_cast<double>(values.size() - 1) * std::clamp(q, 0.0, 1.0);
  const auto below = static_cast<size_t>(place);
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(below);
  std::nth_element(values.begin(), nth, values.end());
  const double low = *nth;
  const double share = place - static_cast<double>(below);
  if (share == 0 || below + 1 == values.size()) return low;
  return low + share * (*std::min_element(nth + 1, values.end()) - low);
}

double Median(std::vector<double> values) { return Quantile(std::move(values), 0.5); }

double StudentQuantile(double probability, int64_t degrees) {
  if (std::isnan(probability)) return probability;
  if (probability < 0.5) return -StudentQuantile(1 - probability, degrees);
  if (probability == 0.5) return 0;
  if (probability >= 1 || degrees < 1) return kInfinity;
  const double tail = 1 - probability;
  double low = 0;
  double high = 1;
  while (StudentTail(high, degrees) > tail) {
    low = high;
    high *= 2;
  }
  for (;;) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) return high;
    (StudentTail(middle, degrees) > tail ? low : high) = middle;
  }
}

Interval ExactMedianInterval(std::vector<double> values, double confidence) {
  const auto n = static_cast<int64_t>(values.size());
  // Between the k-th smallest and the k-th largest lies the median with 1 - 2 P(Bin(n, 1/2) < k).
  double log_mass = -static_cast<double>(n) * (kLn2High + kLn2Low);
  double below = 0;
  int64_t rank = 0;
  for (int64_t k = 1; k <= (n + 1) / 2; ++k) {
    below += PlainExp(log_mass);
    if (1 - 2 * below < confidence - 1e-12) break;
    rank = k;
    log_mass += PlainLog(static_cast<double>(n - k + 1) / static_cast<double>(k));
  }
  if (rank == 0) return {-kInfinity, kInfinity};
  std::sort(values.begin(), values.end());
  return {values[static_cast<size_t>(rank - 1)], values[static_cast<size_t>(n - rank)]};
}

Interval MeanInterval(std::span<const double> values, double confidence) {
  if (values.size() < 2) return {-kInfinity, kInfinity};
  const double mean = MeanOf(values);
  const auto n = static_cast<double>(values.size());
  const double error = std::sqrt(SquaresAround(values, mean) / (n - 1) / n);
  const double half =
      StudentQuantile((1 + confidence) / 2, static_cast<int64_t>(values.size()) - 1) * error;
  return {mean - half, mean + half};
}

Interval ClusterBootstrap(const std::vector<std::vector<double>>& processes, double confidence,
                          int64_t repeats, uint64_t seed) {
  std::vector<std::vector<double>> sorted;
  size_t longest = 0;
  for (const std::vector<double>& process : processes) {
    if (process.empty()) continue;
    longest = std::max(longest, process.size());
    sorted.push_back(process);
    std::sort(sorted.back().begin(), sorted.back().end());
  }
  if (sorted.size() < 2 || repeats < 1) return {-kInfinity, kInfinity};
  std::vector<int32_t> counts(longest);
  std::vector<double> means(static_cast<size_t>(repeats));
  uint64_t state = seed;
  for (double& mean : means) {
    double sum = 0;
    for (size_t i = 0; i < sorted.size(); ++i) {
      const size_t drawn = static_cast<size_t>(((NextRandom(state) >> 32) * sorted.size()) >> 32);
      sum += ResampledMedian(sorted[drawn], counts, state);
    }
    mean = sum / static_cast<double>(sorted.size());
  }
  return {Quantile(means, (1 - confidence) / 2), Quantile(means, (1 + confidence) / 2)};
}

double LagOneAutocorrelation(std::span<const double> values) {
  if (values.size() < 3) return 0;
  const double mean = MeanOf(values);
  double squares = 0;
  double products = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    squares += (values[i] - mean) * (values[i] - mean);
    if (i > 0) products += (values[i] - mean) * (values[i - 1] - mean);
  }
  return squares > 0 ? products / squares : 0;
}

double RelativeDrift(std::span<const double> values) {
  if (values.size() < 2) return 0;
  std::vector<double> points(values.begin(), values.end());
  if (points.size() > kDriftPoints) {
    points.clear();
    for (size_t i = 0; i < kDriftPoints; ++i) {
      points.push_back(Median(
          {values.begin() + static_cast<std::ptrdiff_t>(i * values.size() / kDriftPoints),
           values.begin() + static_cast<std::ptrdiff_t>((i + 1) * values.size() / kDriftPoints)}));
    }
  }
  std::vector<double> slopes;
  slopes.reserve(points.size() * (points.size() - 1) / 2);
  for (size_t i = 0; i < points.size(); ++i) {
    for (size_t j = i + 1; j < points.size(); ++j) {
      slopes.push_back((points[j] - points[i]) / static_cast<double>(j - i));
    }
  }
  const double slope = Median(std::move(slopes));
  const double centre = Median(points);
  return centre == 0 ? 0 : slope * static_cast<double>(points.size()) / centre;
}

}  // namespace h3rt
