// The plots of the page, each with its table.
#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>

#include "h3rt/pages/report_view.h"
#include "h3rt/pages/svg.h"

namespace h3rt::lab {
namespace {

std::string StateCell(const CitedEvidence& cited) {
  return EscapeHtml(WordOf(cited.state) + (cited.reason.empty() ? "" : ": " + cited.reason));
}

std::string EvidenceCell(const CitedEvidence& cited) {
  return HtmlLink(cited.evidence == nullptr ? "" : cited.evidence->file, cited.digest.substr(0, 8));
}

// ---- gains

// Parts per million of a ratio in parts per billion; empty where the statistics have none.
std::optional<int64_t> GainAt(const Doc& statistics, const char* key) {
  if (!At(statistics, key).is_number_integer()) return std::nullopt;
  return (IntAt(statistics, key) - 1000000000) / 1000;
}

struct Gain {
  const ReportRow* row = nullptr;
  const CitedEvidence* cited = nullptr;
  std::string about = {};
  int64_t threshold = 0;
  std::optional<int64_t> At(const char* key) const {
    return GainAt(lab::At(lab::At(cited->evidence->json, "body"), "statistics"), key);
  }
};

std::string PercentText(std::optional<int64_t> ppm) {
  if (!ppm) return "unbounded";
  return (*ppm > 0 ? "+" : "") + FixedText(*ppm, 10000, 2) + " %";
}

std::string RangeText(std::optional<int64_t> low, std::optional<int64_t> high) {
  if (!low && !high) return "—";
  return (low ? FixedText(*low, 10000, 2) : "unbounded") + " to " +
         (high ? FixedText(*high, 10000, 2) : "unbounded");
}

std::vector<Gain> GainsOf(const ReportView& view) {
  std::vector<Gain> gains;
  for (const ReportRow& row : view.rows) {
    for (const CitedEvidence& cited : row.evidence) {
      Gain gain{.row = &row, .cited = &cited};
      if (cited.evidence == nullptr || !gain.At("ratio_e9")) continue;
      const Doc& envelope = cited.evidence->json;
      const Doc& plan = At(envelope, "plan");
      const std::string gate = TextAt(plan, "gate", "isolated");
      gain.threshold = IntAt(plan, "min_gain_ppm",
                             IntAt(At(At(view.lab.policy, "gates"), gate), "min_gain_ppm"));
      gain.about = TextAt(envelope, "vid", "candidate") + ": " +
                   TextAt(At(envelope, "workload"), "id", "no workload") + ", " +
                   TextAt(envelope, "target") + ", " + (cited.role == "result" ? gate : cited.role);
      gains.push_back(std::move(gain));
    }
  }
  return gains;
}

void DrawGain(SvgPlot& plot, const Axis& axis, const Gain& gain, int64_t y) {
  const auto point = gain.At("ratio_e9"), low = gain.At("ci_lo_e9"), high = gain.At("ci_hi_e9");
  const auto aa_low = gain.At("aa_lo_e9"), aa_high = gain.At("aa_hi_e9");
  plot.Text(0, y + 14, Shorten(gain.row->id, 44), "label");
  // On lines of their own: on a phone two texts do not fit beside each other.
  plot.Text(0, y + 31, Shorten(gain.about, 48), "soft");
  plot.Text(0, y + 48, PercentText(point) + " (" + RangeText(low, high) + ")", "soft");
  const int64_t line = y + 66;
  if (aa_low && aa_high) {
    const int64_t from = axis.At(*aa_low);
    plot.Rect(from, line - 8, std::max<int64_t>(axis.At(*aa_high) - from, 20), 16, "band",
              "A/A control: " + RangeText(aa_low, aa_high) + " %");
  }
  plot.Line(axis.At(gain.threshold), line - 11, axis.At(gain.threshold), line + 11, "threshold");
  const EvidenceState state = gain.cited->state;
  const std::string style = state == EvidenceState::kCurrent    ? "current"
                            : state == EvidenceState::kImported ? "imported"
                                                                : "stale";
  const int64_t from = axis.At(low.value_or(axis.low()));
  const int64_t to = axis.At(high.value_or(axis.high()));
  plot.Line(from, line, to, line, "interval " + style);
  for (const int64_t end : {from, to}) plot.Line(end, line - 4, end, line + 4, "interval " + style);
  const Mark mark = state == EvidenceState::kImported  ? Mark::kDiamond
                    : state == EvidenceState::kInvalid ? Mark::kCross
                                                       : Mark::kSquare;
  plot.Draw(mark, axis.At(*point), line, "mark " + style,
            gain.row->id + ": " + PercentText(point) + ", " + WordOf(state));
}

void DrawAxis(SvgPlot& plot, const Axis& axis, int64_t height, int64_t unit, int decimals,
              std::string_view name) {
  for (const int64_t tick : axis.Ticks(5)) {
    const int64_t x = axis.At(tick);
    plot.Line(x, 0, x, height, tick == 0 ? "zero" : "grid");
    const Anchor anchor = x < 600                ? Anchor::kStart
                          : x > kFullWidth - 600 ? Anchor::kEnd
                                                 : Anchor::kMiddle;
    plot.Text(x, height + 16, FixedText(tick, unit, decimals) + std::string(name), "soft", anchor);
  }
}

// ---- resources

// The last name of a mangled symbol with its template arguments, without namespaces and parameters:
// "fused_kernel<true>".
std::string KernelName(const std::string& symbol) {
  int error = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &error), std::free);
  if (error != 0 || text == nullptr) return symbol;
  std::string name;
  int depth = 0;
  for (const char* at = text.get(); *at != '\0'; ++at) {
    if (depth == 0 && *at == '(') break;
    if (*at == '<') ++depth;
    if (*at == '>') --depth;
    // A namespace or a return type ends here, unless it belongs to an argument.
    if (depth == 0 && (*at == ':' || *at == ' ')) {
      name.clear();
    } else {
      name += *at;
    }
  }
  return name.empty() ? symbol : name;
}

struct KernelKey {
  std::string id, vid, symbol;
  auto operator<=>(const KernelKey&) const = default;
};
struct KernelUse {
  const CitedEvidence* cited = nullptr;
  const Doc* kernel = nullptr;
  int64_t start_us = 0;
};
// The newest valid report a kernel and target.
using Kernels = std::map<KernelKey, std::map<std::string, KernelUse>>;

Kernels KernelsOf(const ReportView& view) {
  Kernels kernels;
  for (const ReportRow& row : view.rows) {
    for (const CitedEvidence& cited : row.evidence) {
      if (cited.evidence == nullptr || cited.state == EvidenceState::kInvalid) continue;
      const Doc& envelope = cited.evidence->json;
      if (TextAt(envelope, "kind") != "resource") continue;
      const int64_t start_us = IntAt(At(envelope, "invocation"), "start_us");
      for (const Doc& kernel : At(At(envelope, "body"), "kernels")) {
        KernelUse& use = kernels[{row.id, TextAt(envelope, "vid"), TextAt(kernel, "symbol")}]
                                [TextAt(envelope, "target")];
        if (use.kernel != nullptr && start_us < use.start_us) continue;
        use = {.cited = &cited, .kernel = &kernel, .start_us = start_us};
      }
    }
  }
  return kernels;
}

struct Resource {
  const char* id;
  const char* name;
  std::vector<const char*> keys;
};

std::optional<int64_t> ResourceOf(const std::map<std::string, KernelUse>& uses, const char* target,
                                  const Resource& resource) {
  const auto found = uses.find(target);
  if (found == uses.end()) return std::nullopt;
  int64_t sum = 0;
  for (const char* key : resource.keys) sum += IntAt(*found->second.kernel, key);
  return sum;
}

std::string ResourcePanel(const Kernels& kernels, const Resource& resource) {
  constexpr int64_t kRow = 46;
  int64_t most = 0;
  for (const auto& [key, uses] : kernels) {
    for (const char* target : {"sm_90a", "sm_121a"}) {
      most = std::max(most, ResourceOf(uses, target, resource).value_or(0));
    }
  }
  const Axis axis(0, std::max<int64_t>(most, 1), 3);
  const int64_t height = kRow * static_cast<int64_t>(kernels.size()) + 6;
  SvgPlot plot(std::string("plot-") + resource.id, height + 22, resource.name,
               "One line a kernel: a dot for sm_90a, a diamond for sm_121a.");
  for (const int64_t tick : axis.Ticks(4)) {
    plot.Line(axis.At(tick), 0, axis.At(tick), height, "grid");
    plot.Text(axis.At(tick), height + 16, CountText(tick), "soft",
              tick == 0 ? Anchor::kStart : Anchor::kMiddle);
  }
  int64_t y = 0;
  for (const auto& [key, uses] : kernels) {
    const auto hopper = ResourceOf(uses, "sm_90a", resource);
    const auto spark = ResourceOf(uses, "sm_121a", resource);
    plot.Text(0, y + 14, Shorten(KernelName(key.symbol), 30), "label");
    plot.Text(kFullWidth, y + 14,
              (hopper ? CountText(*hopper) : "—") + " | " + (spark ? CountText(*spark) : "—"),
              "soft", Anchor::kEnd);
    if (hopper && spark) plot.Line(axis.At(*hopper), y + 29, axis.At(*spark), y + 29, "bridge");
    if (hopper) plot.Draw(Mark::kDot, axis.At(*hopper), y + 29, "mark hopper", key.id + ", sm_90a");
    if (spark) {
      plot.Draw(Mark::kDiamond, axis.At(*spark), y + 29, "mark spark", key.id + ", sm_121a");
    }
    y += kRow;
  }
  return fmt::format("<div><h3>{}</h3>\n{}</div>\n", resource.name, plot.Finish());
}

}  // namespace

Figure StatusFigure(const ReportView& view) {
  constexpr int64_t kRow = 44;
  std::map<std::string, std::pair<int64_t, int64_t>> counts;
  int64_t most = 1;
  for (const ReportRow& row : view.rows) {
    const std::string imported = TextAt(row.record->json, "imported_status");
    most = std::max(most, ++counts[row.status].first);
    if (!imported.empty()) most = std::max(most, ++counts[imported].second);
  }
  Figure figure;
  SvgPlot plot("plot-status", kRow * 7, "Records by status",
               "A filled bar for the status held here, a thin outlined bar for the status that the "
               "imported page gave.");
  std::vector<std::vector<std::string>> rows;
  int64_t y = 0, held_total = 0, imported_total = 0;
  for (const StatusMeaning& entry : kStatusMeanings) {
    const auto [held, imported] = counts[entry.status];
    plot.Text(0, y + 13, std::string(entry.sign) + " " + Words(entry.status), "label");
    plot.Text(kFullWidth, y + 13, fmt::format("{} here, {} imported", held, imported), "soft",
              Anchor::kEnd);
    plot.Rect(0, y + 20, kFullWidth, 9, "track");
    if (held > 0) {
      plot.Rect(0, y + 20, held * kFullWidth / most, 9, std::string("s-") + entry.status);
    }
    if (imported > 0) plot.Rect(0, y + 31, imported * kFullWidth / most, 4, "outline");
    y += kRow;
    held_total += held;
    imported_total += imported;
    rows.push_back({EscapeHtml(entry.status), CountText(held), CountText(imported)});
  }
  rows.push_back({"<b>Total</b>", CountText(held_total), CountText(imported_total)});
  figure.svg = plot.Finish();
  figure.twin = HtmlTable("Records by status", {"Status", "#Held here", "#Imported as"}, rows);
  return figure;
}

Figure GateFigure(const ReportView& view) {
  constexpr int64_t kRow = 40;
  // Class -> gate -> verdict (with " (stale)") -> records.
  std::map<std::string, std::array<std::map<std::string, int64_t>, 6>> classes;
  for (const ReportRow& row : view.rows) {
    for (const auto& [device_class, verdicts] : row.verdicts) {
      for (size_t gate = 0; gate < verdicts.size(); ++gate) {
        if (verdicts[gate] == nullptr) continue;
        const bool current = row.IsCurrent(*verdicts[gate]);
        ++classes[device_class][gate]
                 [Words(TextAt(*verdicts[gate], "verdict")) + (current ? "" : " (stale)")];
      }
    }
  }
  Figure figure;
  figure.empty =
      "No gate has a verdict yet. <code>h3rt lab run ID</code> makes evidence, "
      "<code>h3rt lab gate ID</code> judges it.";
  std::vector<std::vector<std::string>> rows;
  for (const auto& [device_class, gates] : classes) {
    int64_t most = 1;
    for (const auto& verdicts : gates) {
      int64_t sum = 0;
      for (const auto& [verdict, count] : verdicts) sum += count;
      most = std::max(most, sum);
    }
    SvgPlot plot("plot-gates-" + EscapeHtml(device_class), kRow * 6, "Gates on " + device_class,
                 "One bar a gate, in the order in which they are passed; each part is a verdict.");
    int64_t y = 0;
    for (size_t gate = 0; gate < gates.size(); ++gate) {
      std::string words;
      plot.Rect(0, y + 20, kFullWidth, 9, "track");
      int64_t x = 0;
      for (const char* verdict : kVerdicts) {
        for (const char* stale : {"", " (stale)"}) {
          const auto found = gates[gate].find(Words(verdict) + stale);
          if (found == gates[gate].end()) continue;
          const int64_t width = found->second * kFullWidth / most;
          plot.Rect(x, y + 20, width, 9, std::string("v-") + verdict + (*stale ? " hollow" : ""),
                    fmt::format("{} {}", found->second, found->first));
          x += width;
          words += fmt::format("{}{} {}", words.empty() ? "" : ", ", found->second, found->first);
          rows.push_back({EscapeHtml(device_class), kGates[gate], EscapeHtml(found->first),
                          CountText(found->second)});
        }
      }
      plot.Text(0, y + 13, kGates[gate], "label");
      plot.Text(kFullWidth, y + 13, words.empty() ? "not run" : words, "soft", Anchor::kEnd);
      y += kRow;
    }
    figure.svg += fmt::format("<h3>{}</h3>\n{}", EscapeHtml(device_class), plot.Finish());
  }
  figure.twin = HtmlTable("Verdicts by device class and gate",
                          {"Class", "Gate", "Verdict", "#Records"}, rows);
  return figure;
}

Figure GainFigure(const ReportView& view) {
  constexpr int64_t kRow = 92;
  const std::vector<Gain> gains = GainsOf(view);
  Figure figure;
  figure.empty =
      "No timing pair is in the store yet. <code>h3rt lab plan ID --gate isolated</code>, then on "
      "a "
      "machine with a GPU <code>h3rt lab run ID --gate isolated --bundle OUT</code>, and here "
      "<code>h3rt lab import bundle OUT</code>.";
  if (gains.empty()) return figure;
  int64_t low = 0, high = 0;
  for (const Gain& gain : gains) {
    for (const char* key : {"ratio_e9", "ci_lo_e9", "ci_hi_e9", "aa_lo_e9", "aa_hi_e9"}) {
      low = std::min({low, gain.At(key).value_or(0), gain.threshold});
      high = std::max({high, gain.At(key).value_or(0), gain.threshold});
    }
  }
  const Axis axis(low, high, 4);
  const int64_t height = kRow * static_cast<int64_t>(gains.size());
  SvgPlot plot("plot-gains", height + 22, "Gains with intervals",
               "One row a timing pair: the gain of the candidate with its interval over processes, "
               "the threshold as a dashed line, the A/A control as a band.");
  DrawAxis(plot, axis, height, 10000, high - low < 50000 ? 1 : 0, " %");
  std::vector<std::vector<std::string>> rows;
  int64_t y = 0;
  for (const Gain& gain : gains) {
    DrawGain(plot, axis, gain, y);
    y += kRow;
    const Doc& statistics = At(At(gain.cited->evidence->json, "body"), "statistics");
    rows.push_back(
        {EscapeHtml(gain.row->id), EscapeHtml(gain.about), PercentText(gain.At("ratio_e9")),
         RangeText(gain.At("ci_lo_e9"), gain.At("ci_hi_e9")),
         RangeText(gain.At("exact_lo_e9"), gain.At("exact_hi_e9")),
         FixedText(gain.threshold, 10000, 2), RangeText(gain.At("aa_lo_e9"), gain.At("aa_hi_e9")),
         QuantityText("mde_e9", At(statistics, "mde_e9")),
         TimeText(IntAt(statistics, "baseline_p50_ps")),
         TimeText(IntAt(statistics, "candidate_p50_ps")), StateCell(*gain.cited),
         EvidenceCell(*gain.cited)});
  }
  figure.svg = plot.Finish();
  figure.twin = HtmlTable(
      "Gains (percent; intervals of 95 %)",
      {"Record", "Workload, class, gate", "#Gain", "#Over processes", "#Over quads", "#Wanted",
       "#A/A", "#Least seen", "#Baseline p50", "#Candidate p50", "Evidence is", "Evidence"},
      rows);
  return figure;
}

Figure ResourceFigure(const ReportView& view) {
  static const std::vector<Resource> kResources = {
      {"registers", "Registers a thread", {"registers"}},
      {"spill", "Spilled bytes a thread", {"spill_store_bytes", "spill_load_bytes"}},
      {"shared", "Static shared bytes a block", {"static_shared_bytes"}}};
  const Kernels kernels = KernelsOf(view);
  Figure figure;
  figure.empty =
      "No resource report is in the store yet. <code>h3rt lab run ID --gate build --target "
      "sm_121a</code>, on any machine with nvcc, makes one.";
  if (kernels.empty()) return figure;
  figure.svg = "<div class=\"panels\">\n";
  for (const Resource& resource : kResources) figure.svg += ResourcePanel(kernels, resource);
  figure.svg += "</div>\n";
  std::vector<std::vector<std::string>> rows;
  for (const auto& [key, uses] : kernels) {
    for (const auto& [target, use] : uses) {
      std::vector<std::string> row = {EscapeHtml(key.id + (key.vid.empty() ? "" : ", " + key.vid)),
                                      EscapeHtml(KernelName(key.symbol)), EscapeHtml(target)};
      for (const char* field : {"registers", "stack_bytes", "spill_store_bytes", "spill_load_bytes",
                                "static_shared_bytes", "constant_bytes", "ctas_per_sm"}) {
        const Doc& value = At(*use.kernel, field);
        row.push_back(value.is_null() ? "—" : EscapeHtml(QuantityText("", value)));
      }
      row.push_back(EscapeHtml(TextAt(*use.kernel, "limiter", "—")));
      row.push_back(StateCell(*use.cited));
      row.push_back(EvidenceCell(*use.cited));
      rows.push_back(std::move(row));
    }
  }
  figure.twin = HtmlTable("Resources of each kernel",
                          {"Record, variant", "Kernel", "Target", "#Registers", "#Stack B",
                           "#Spill stores B", "#Spill loads B", "#Shared B", "#Constant B",
                           "#Blocks an SM", "Limited by", "Evidence is", "Evidence"},
                          rows);
  return figure;
}

Figure TimelineFigure(const ReportView& view) {
  constexpr int64_t kTop = 24, kRow = 38;
  const std::vector<LogEntry>& entries = view.lab.log.entries;
  Figure figure;
  figure.empty = "The log has no entry yet. <code>h3rt lab log append FILE</code> writes one.";
  if (entries.empty()) return figure;
  std::vector<std::string> kinds;  // in the order in which they turn up
  for (const LogEntry& entry : entries) {
    const std::string kind = TextAt(entry.json, "kind");
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  const int64_t height = kTop + kRow * static_cast<int64_t>(kinds.size());
  SvgPlot plot("plot-log", height, "The log in order",
               "One mark an entry, from left to right in the order of the log, a lane a kind; a "
               "vertical line where a day begins.");
  const auto x_of = [&](size_t i) {
    return (2 * static_cast<int64_t>(i) + 1) * kFullWidth /
           (2 * static_cast<int64_t>(entries.size()));
  };
  std::string day;
  int64_t free_from = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::string date = TextAt(entries[i].json, "ts").substr(0, 10);
    if (date == day) continue;
    day = date;
    const int64_t x = static_cast<int64_t>(i) * kFullWidth / static_cast<int64_t>(entries.size());
    plot.Line(x, 0, x, height, "grid");
    if (x < free_from || x > kFullWidth - 2000) continue;
    plot.Text(x, 12, (x == 0 ? "" : " ") + date, "soft");
    free_from = x + 2500;
  }
  int64_t y = kTop;
  for (const std::string& kind : kinds) {
    int64_t count = 0;
    const Mark mark = kind == "close"                                ? Mark::kSquare
                      : kind == "reopen"                             ? Mark::kTriangle
                      : kind == "plan"                               ? Mark::kDiamond
                      : kind == "invalidate" || kind == "correction" ? Mark::kCross
                                                                     : Mark::kDot;
    plot.Line(0, y + 26, kFullWidth, y + 26, "grid");
    for (size_t i = 0; i < entries.size(); ++i) {
      const Doc& entry = entries[i].json;
      if (TextAt(entry, "kind") != kind) continue;
      ++count;
      plot.Draw(mark, x_of(i), y + 26, "mark k-" + kind,
                fmt::format("{}, {}: {}", IntAt(entry, "seq"), TextAt(entry, "ts").substr(0, 10),
                            TextAt(entry, "title")));
    }
    plot.Text(0, y + 13, fmt::format("{} ({})", kind, count), "label");
    y += kRow;
  }
  std::vector<std::vector<std::string>> rows;
  for (const LogEntry& entry : entries) {
    rows.push_back({CountText(entry.seq()), EscapeHtml(TextAt(entry.json, "ts").substr(0, 19)),
                    EscapeHtml(TextAt(entry.json, "kind")), EscapeHtml(TextAt(entry.json, "title")),
                    CountText(static_cast<int64_t>(At(entry.json, "records").size()))});
  }
  figure.svg = plot.Finish();
  figure.twin =
      HtmlTable("Log entries", {"#Entry", "Time (UTC)", "Kind", "Title", "#Records"}, rows);
  return figure;
}

}  // namespace h3rt::lab
