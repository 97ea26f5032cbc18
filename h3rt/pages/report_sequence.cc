// Every sample of every timing, in the order in which it was taken.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "h3rt/lab/stats.h"
#include "h3rt/pages/report_view.h"
#include "h3rt/pages/svg.h"

namespace h3rt::lab {
namespace {

// A page stays below 1.5 MB: about ten bytes a sample.
constexpr size_t kMostSamples = 4000;
constexpr size_t kMostSamplesInAll = 80000;
constexpr int64_t kHeight = 200;

int64_t MedianOf(std::vector<int64_t> values) {
  if (values.empty()) return 0;
  const size_t middle = values.size() / 2;
  std::sort(values.begin(), values.end());
  return values.size() % 2 == 1 ? values[middle]
                                : values[middle - 1] + (values[middle] - values[middle - 1]) / 2;
}

// Path data with relative moves: a short stroke a sample.
class Strokes {
 public:
  explicit Strokes(const char* stroke) : stroke_(stroke) {}
  void Add(int64_t x, int64_t y) {
    data_ += fmt::format("m{} {}{}", x - x_, y - y_, stroke_);
    x_ = x;
    y_ = y;
  }
  const std::string& data() const { return data_; }

 private:
  const char* stroke_;  // returns to where it began
  std::string data_ = "M0 0";
  int64_t x_ = 0, y_ = 0;
};

struct Timing {
  const ReportRow* row;
  const Evidence* evidence;
  EvidenceState state;
};

std::vector<Timing> TimingsOf(const ReportView& view) {
  std::vector<Timing> timings;
  std::set<std::string> seen;
  for (const ReportRow& row : view.rows) {
    for (const CitedEvidence& cited : row.evidence) {
      if (cited.evidence == nullptr || !seen.insert(cited.digest).second) continue;
      const std::string kind = TextAt(cited.evidence->json, "kind");
      const bool samples = !TextAt(At(cited.evidence->json, "body"), "samples_blob").empty();
      if ((kind == "timing_pair" || kind == "timing_single") && samples) {
        timings.push_back({.row = &row, .evidence = cited.evidence, .state = cited.state});
      }
    }
  }
  return timings;
}

// The range that is drawn: all but the outermost four hundredths on each side, with room. What lies
// outside is marked at the edge.
Axis RangeOf(const std::vector<Sample>& samples) {
  std::vector<int64_t> times;
  for (const Sample& sample : samples) times.push_back(sample.picoseconds);
  std::sort(times.begin(), times.end());
  const size_t cut = times.size() / 25;
  return {times[cut], times[times.size() - 1 - cut], 35};
}

std::string Twin(const std::vector<Sample>& samples, const Doc& statistics) {
  std::map<uint16_t, std::array<std::vector<int64_t>, 2>> processes;
  std::map<uint16_t, int64_t> controls, discarded;
  for (const Sample& sample : samples) {
    auto& arms = processes[sample.process];
    if (sample.flags != 0) {
      ++discarded[sample.process];
    } else if (sample.role != 0) {
      ++controls[sample.process];
    } else {
      arms[sample.arm == 0 ? 0 : 1].push_back(sample.picoseconds);
    }
  }
  std::vector<std::vector<std::string>> rows;
  const Doc& ratios = At(statistics, "process_ratio_e9");
  for (const auto& [process, arms] : processes) {
    const bool known = ratios.is_array() && rows.size() < ratios.size();
    rows.push_back({CountText(process),
                    CountText(static_cast<int64_t>(arms[0].size() + arms[1].size())),
                    CountText(controls[process]), CountText(discarded[process]),
                    arms[0].empty() ? "—" : TimeText(MedianOf(arms[0])),
                    arms[1].empty() ? "—" : TimeText(MedianOf(arms[1])),
                    known ? QuantityText("ratio_e9", ratios[rows.size()]) : "—"});
  }
  return HtmlTable(
      "Medians of each process",
      {"#Process", "#Samples", "#A/A samples", "#Discarded", "#Baseline", "#Candidate", "#Ratio"},
      rows);
}

// Every quad, or every n-th where there are too many samples; whole quads, so that no arm is
// favoured.
std::vector<Sample> Thinned(const std::vector<Sample>& samples, size_t most, size_t& step) {
  step = (samples.size() + most - 1) / most;
  std::vector<Sample> kept;
  for (const Sample& sample : samples) {
    if (sample.quad % step == 0) kept.push_back(sample);
  }
  return kept;
}

std::string Draw(const std::string& id, const std::string& title,
                 const std::vector<Sample>& samples, const Axis& axis, const Doc& statistics,
                 int64_t& outside) {
  SvgPlot plot(
      id, kHeight + 22, title,
      "Time a call from left to right in the order of the run; baseline as dots, candidate "
      "as upright strokes, A/A control as dashes, a line where a process begins.");
  for (const int64_t tick : axis.Ticks(4)) {
    const int64_t y = kHeight - axis.At(tick, kHeight);
    plot.Line(0, y, kFullWidth, y, "grid");
  }
  Strokes baseline("h0"), candidate("v50v-50"), control("h30h-30"), out("v70v-70");
  const auto count = static_cast<int64_t>(samples.size());
  int process = -1;
  for (int64_t i = 0; i < count; ++i) {
    const Sample& sample = samples[static_cast<size_t>(i)];
    if (sample.process != process) {
      process = sample.process;
      const int64_t x = i * kFullWidth / count;
      plot.Line(x, 0, x, kHeight + 6, "zero");
      plot.Text(x, kHeight + 18, fmt::format("{}{}", i == 0 ? "proc " : "", process), "soft");
    }
    const int64_t x = (2 * i + 1) * 10000 / (2 * count);
    const int64_t y = 10 * kHeight - axis.At(sample.picoseconds, 10 * kHeight);
    const bool beyond = sample.picoseconds < axis.low() || sample.picoseconds > axis.high();
    outside += beyond ? 1 : 0;
    if (beyond || sample.flags != 0) {
      out.Add(x, std::clamp<int64_t>(y, 0, 10 * kHeight - 70));
    } else if (sample.role != 0) {
      control.Add(x, y);
    } else if (sample.arm == 0) {
      baseline.Add(x, y);
    } else {
      candidate.Add(x, y - 25);
    }
  }
  plot.Path(0, kHeight, control.data(), "run control");
  plot.Path(0, kHeight, baseline.data(), "run baseline");
  plot.Path(0, kHeight, candidate.data(), "run candidate");
  plot.Path(0, kHeight, out.data(), "run out");
  for (const int64_t tick : axis.Ticks(4)) {
    plot.Text(0, kHeight - axis.At(tick, kHeight) - 3, TimeText(tick), "soft");
  }
  const int64_t first = IntAt(statistics, "baseline_p50_ps", IntAt(statistics, "p50_ps"));
  const int64_t second = IntAt(statistics, "candidate_p50_ps");
  for (const bool is_candidate : {false, true}) {
    const int64_t median = is_candidate ? second : first;
    if (median <= 0) continue;
    const int64_t y = kHeight - axis.At(median, kHeight);
    // The slower arm is higher up: its label goes above its line, the other one below.
    const bool above = is_candidate ? second > first : first >= second;
    plot.Line(0, y, kFullWidth, y, is_candidate ? "median candidate" : "median baseline");
    plot.Text(kFullWidth, above ? y - 4 : y + 13,
              (is_candidate ? "candidate p50 " : "baseline p50 ") + TimeText(median),
              is_candidate ? "t-candidate" : "t-baseline", Anchor::kEnd);
  }
  return plot.Finish();
}

}  // namespace

absl::StatusOr<std::vector<SequenceFigure>> SequenceFigures(const ReportView& view) {
  std::vector<SequenceFigure> figures;
  const std::vector<Timing> timings = TimingsOf(view);
  const size_t most =
      std::min(kMostSamples, kMostSamplesInAll / std::max<size_t>(timings.size(), 1));
  for (const Timing& timing : timings) {
    const Doc& envelope = timing.evidence->json;
    const Doc& body = At(envelope, "body");
    Findings findings;
    const std::optional<std::string> blob =
        ReadBlob(view.lab.store, *timing.evidence, TextAt(body, "samples_blob"), findings);
    H3RT_RETURN_IF_ERROR(StatusOfFindings(findings));
    std::string reason;
    const std::vector<Sample> samples = UnpackSamples(blob.value_or(""), reason);
    if (samples.empty()) {
      return DataLoss(
          {.what = "samples of a timing", .got = reason, .where = timing.evidence->file});
    }
    size_t step = 1;
    const std::vector<Sample> drawn = Thinned(samples, std::max<size_t>(most, 1), step);
    SequenceFigure figure;
    figure.title = fmt::format(
        "{}, {} against {}, {}, {}", timing.row->id, TextAt(body, "candidate", "candidate"),
        TextAt(body, "baseline", "baseline"), TextAt(At(envelope, "workload"), "id", "no workload"),
        TextAt(envelope, "target"));
    int64_t outside = 0;
    figure.figure.svg = Draw(fmt::format("plot-run-{}", figures.size()), figure.title, drawn,
                             RangeOf(samples), At(body, "statistics"), outside);
    figure.figure.twin = Twin(samples, At(body, "statistics"));
    figure.note = fmt::format(
        "{} samples ({}), {}. Evidence {}, {}.{}{}",
        CountText(static_cast<int64_t>(samples.size())), EscapeHtml(TextAt(body, "mode")),
        step == 1 ? std::string("all drawn") : fmt::format("one quad in {} drawn", step),
        HtmlLink(timing.evidence->file, TextAt(envelope, "kind")), WordOf(timing.state),
        outside > 0 ? fmt::format(" {} lie beyond the drawn range, marked at its edge.", outside)
                    : "",
        "");
    figures.push_back(std::move(figure));
  }
  return figures;
}

}  // namespace h3rt::lab
