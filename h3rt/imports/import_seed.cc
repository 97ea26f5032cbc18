// The seed's registry page and its log, as data.
#include <algorithm>
#include <charconv>

#include "h3rt/imports/import.h"
#include "h3rt/lab/gate.h"

namespace h3rt::lab {
namespace {

constexpr size_t kColumns = 6;

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// Without code and bold marks, runs of space as one.
std::string Plain(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool space = c == ' ' || c == '\t' || c == '\r';
    const bool bold = text.substr(i, 2) == "**";
    i += bold ? 1 : 0;
    if (c == '`' || bold) continue;
    if (!space) {
      out += c;
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

// The cells of a table row. A bar behind a backslash belongs to the text.
std::vector<std::string_view> Cells(std::string_view row) {
  std::vector<std::string_view> cells;
  size_t begin = 1;
  for (size_t i = 1; i < row.size(); ++i) {
    if (row[i] != '|' || row[i - 1] == '\\') continue;
    cells.push_back(Trim(row.substr(begin, i - begin)));
    begin = i + 1;
  }
  return cells;
}

bool IsRule(std::string_view row) {
  return row.find_first_not_of("|-: ") == std::string_view::npos;
}

bool IsStatus(std::string_view text) {
  return std::find(std::begin(kStatuses), std::end(kStatuses), text) != std::end(kStatuses);
}

// A word in code marks that looks like a file: a folder in it, or an ending.
bool NamesPath(std::string_view cell) {
  for (size_t i = 0; (i = cell.find('`', i)) != std::string_view::npos; ++i) {
    const size_t end = cell.find('`', i + 1);
    if (end == std::string_view::npos) return false;
    const std::string_view word = cell.substr(i + 1, end - i - 1);
    const size_t dot = word.rfind('.');
    const bool ending = dot != std::string_view::npos && dot > 0 && dot + 1 < word.size();
    if (!word.empty() && word.find(' ') == std::string_view::npos &&
        (ending || word.find('/') != std::string_view::npos)) {
      return true;
    }
    i = end;
  }
  return false;
}

// The 1-based line and the text of each line; what is no UTF-8 or holds control bytes is a finding
// and left out.
template <typename Visit>
void EachLine(std::string_view text, std::string_view file, Findings& findings, Visit visit) {
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    bool sound = true;
    for (std::string_view rest = line; !rest.empty() && sound;) {
      const size_t step = Utf8Step(rest);
      const auto byte = static_cast<unsigned char>(rest[0]);
      sound = step > 0 && byte != 0x7f && (byte >= 0x20 || byte == '\t' || byte == '\r');
      rest.remove_prefix(step);
    }
    if (sound) {
      visit(number, line);
    } else {
      findings.Add({.code = "E-JSON-ENC",
                    .file = std::string(file),
                    .line = number,
                    .message = "control bytes or no UTF-8"});
    }
  }
}

class PageReader {
 public:
  PageReader(SeedPage& page, Findings& findings) : page_(page), findings_(findings) {}

  void Line(int64_t number, std::string_view line) {
    line = Trim(line);
    if (line.starts_with("## ")) {
      section_ = Plain(line.substr(3));
      rows_seen_ = 0;
    }
    if (!line.starts_with('|') || IsRule(line) || ++rows_seen_ == 1) return;  // 1: the heads
    if (section_ == "Complete Registry") Row(number, Cells(line));
    if (section_ == "Totals") Total(number, Cells(line));
  }

  void Finish() {
    if (page_.rows.empty()) Add("E-SEED-FORM", 0, "no rows under \"Complete Registry\"");
    if (page_.printed_total < 0) Add("E-SEED-FORM", 0, "no total under \"Totals\"");
    int64_t sum = 0;
    for (const char* status : kStatuses) {
      const auto printed = page_.printed.find(status);
      const int64_t counted = page_.counted[status];
      if (printed == page_.printed.end()) {
        if (counted > 0) Differ(status, counted, "nothing");
        continue;
      }
      sum += printed->second;
      if (printed->second != counted) Differ(status, counted, std::to_string(printed->second));
    }
    const auto rows = static_cast<int64_t>(page_.rows.size());
    if (page_.printed_total < 0) return;
    if (page_.printed_total != rows) Differ("total", rows, std::to_string(page_.printed_total));
    if (page_.printed_total != sum) {
      Add("E-TOTALS", total_line_,
          "the printed counts add up to " + std::to_string(sum) + ", the total says " +
              std::to_string(page_.printed_total));
    }
  }

 private:
  void Add(const char* code, int64_t line, std::string message) {
    findings_.Add({.code = code, .file = page_.file, .line = line, .message = std::move(message)});
  }
  void Differ(const std::string& what, int64_t counted, const std::string& printed) {
    const auto at = lines_.find(what);
    Add("E-TOTALS", at == lines_.end() ? total_line_ : at->second,
        what + ": " + std::to_string(counted) + " counted, " + printed + " printed");
  }

  void Row(int64_t number, const std::vector<std::string_view>& cells) {
    if (cells.size() != kColumns ||
        std::any_of(cells.begin(), cells.end(), [](std::string_view c) { return c.empty(); })) {
      return Add("E-SEED-FORM", number,
                 "wanted 6 filled cells, got " + std::to_string(cells.size()));
    }
    SeedRow row{.line = number,
                .id = Plain(cells[0]),
                .name = Plain(cells[1]),
                .status = Plain(cells[2]),
                .decision = Plain(cells[3]),
                .evidence = std::string(cells[4]),
                .gaps = Plain(cells[5])};
    if (!IsId(row.id)) return Add("E-SEED-FORM", number, "no id: " + row.id);
    if (!IsStatus(row.status)) Add("E-STATUS-ENUM", number, row.id + " has status " + row.status);
    for (const SeedRow& other : page_.rows) {
      if (other.id != row.id) continue;
      Add("E-ID-DUP", number, row.id + " stands in line " + std::to_string(other.line) + " too");
    }
    if (!NamesPath(row.evidence)) {
      Add("W-SEED-PATH", number, row.id + " cites no path: " + row.evidence);
    }
    ++page_.counted[row.status];
    page_.rows.push_back(std::move(row));
  }

  void Total(int64_t number, const std::vector<std::string_view>& cells) {
    int64_t count = -1;
    const std::string name = cells.empty() ? "" : Plain(cells[0]);
    const std::string text = cells.size() == 2 ? Plain(cells[1]) : "";
    const auto end = std::from_chars(text.data(), text.data() + text.size(), count);
    if (text.empty() || end.ec != std::errc() || end.ptr != text.data() + text.size() ||
        count < 0) {
      return Add("E-SEED-FORM", number, "wanted a name and a count");
    }
    if (name == "Total") {
      page_.printed_total = count;
      total_line_ = number;
      lines_["total"] = number;
    } else if (!IsStatus(name)) {
      Add("E-STATUS-ENUM", number, "a total of " + name);
    } else {
      page_.printed[name] = count;
      lines_[name] = number;
    }
  }

  SeedPage& page_;
  Findings& findings_;
  std::string section_;
  int64_t rows_seen_ = 0;
  int64_t total_line_ = 0;
  std::map<std::string, int64_t> lines_;
};

// Blocks are joined here: the next line may go on with a wrapped paragraph.
class LogReader {
 public:
  std::vector<SeedEntry> entries;

  void Line(int64_t number, std::string_view raw) {
    std::string_view line = Trim(raw);
    if (line.empty()) return End();
    if (line.starts_with('#')) {
      End();
      line.remove_prefix(std::min(line.find_first_not_of("# "), line.size()));
      return Heading(number, Plain(line));
    }
    const bool table = line.starts_with('|');
    if (table || line.find('\t') != std::string_view::npos) {
      End();
      if (!table || !IsRule(line)) Paragraph(number, table ? Joined(Cells(line)) : Tabbed(line));
      return;
    }
    constexpr std::string_view kBullet = "\xe2\x80\xa2";
    const size_t bullet = line.starts_with("- ") ? 2 : line.starts_with(kBullet) ? 3 : 0;
    if (bullet > 0) End();
    listed_ = listed_ || bullet > 0;
    if (block_.empty()) first_ = number;
    block_ += (block_.empty() ? "" : " ") + std::string(Trim(line.substr(bullet)));
    ++lines_;
  }

  void End() {
    const std::string text = Plain(block_);
    const bool alone = lines_ == 1 && !listed_;
    block_.clear();
    lines_ = 0;
    listed_ = false;
    if (text.empty()) return;
    if (alone && first_ == 1 && text.find(' ') == std::string::npos) return;  // the file's path
    if (alone && IsHeading(text)) return Heading(first_, text);
    constexpr std::string_view kStatus = "Status: ";
    if (text.starts_with(kStatus) && !entries.empty() && entries.back().status.empty()) {
      entries.back().status = text.substr(kStatus.size());
      return;
    }
    Paragraph(first_, text);
  }

 private:
  static bool IsDate(std::string_view text) {
    constexpr std::string_view kForm = "dddd-dd-dd";
    if (text.size() < kForm.size()) return false;
    for (size_t i = 0; i < kForm.size(); ++i) {
      if (kForm[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != '-') return false;
    }
    return true;
  }
  // Where the marks are lost: dated, or a short line in capitals that is no sentence.
  static bool IsHeading(std::string_view text) {
    if (IsDate(text) && text.substr(10, 2) == ": ") return true;
    return text.size() <= 80 && text[0] >= 'A' && text[0] <= 'Z' &&
           text.find_first_of(".:;,!?") == std::string_view::npos;
  }
  void Heading(int64_t number, const std::string& text) {
    SeedEntry entry{.line = number, .title = text};
    if (IsDate(text) && text.substr(10, 2) == ": ") {
      entry.date = text.substr(0, 10);
      entry.title = text.substr(12);
    }
    entries.push_back(std::move(entry));
  }
  void Paragraph(int64_t number, std::string text) {
    if (entries.empty()) entries.push_back({.line = number});
    entries.back().paragraphs.push_back(std::move(text));
  }
  static std::string Joined(const std::vector<std::string_view>& cells) {
    std::string out;
    for (const std::string_view cell : cells) out += (out.empty() ? "" : "\t") + Plain(cell);
    return out;
  }
  static std::string Tabbed(std::string_view line) {
    std::vector<std::string_view> cells;
    for (size_t at = 0; at <= line.size();) {
      const size_t end = std::min(line.find('\t', at), line.size());
      cells.push_back(line.substr(at, end - at));
      at = end + 1;
    }
    return Joined(cells);
  }

  std::string block_;
  int64_t first_ = 0;
  int64_t lines_ = 0;
  bool listed_ = false;
};

std::string NameOf(const SeedEntry& entry) {
  return (entry.date.empty() ? "" : entry.date + ": ") + entry.title;
}

}  // namespace

SeedPage ParseSeedPage(std::string_view text, std::string_view file, Findings& findings) {
  SeedPage page{.file = std::string(file), .sha256 = DigestOfText(text)};
  PageReader reader(page, findings);
  EachLine(text, file, findings,
           [&](int64_t number, std::string_view line) { reader.Line(number, line); });
  reader.Finish();
  return page;
}

std::vector<SeedEntry> ParseSeedLog(std::string_view text, std::string_view file,
                                    Findings& findings) {
  LogReader reader;
  EachLine(text, file, findings,
           [&](int64_t number, std::string_view line) { reader.Line(number, line); });
  reader.End();
  int64_t dated = 0;
  for (const SeedEntry& entry : reader.entries) {
    dated += entry.date.empty() ? 0 : 1;
    if (entry.status.empty() || IsStatus(entry.status)) continue;
    findings.Add({.code = "E-STATUS-ENUM",
                  .file = std::string(file),
                  .line = entry.line,
                  .message = NameOf(entry) + " has status " + entry.status});
  }
  if (dated == 0) {
    findings.Add({.code = "E-SEED-FORM", .file = std::string(file), .message = "no dated entries"});
  }
  return std::move(reader.entries);
}

std::string WhyNotPrefix(const std::vector<SeedEntry>& shorter,
                         const std::vector<SeedEntry>& longer) {
  for (size_t i = 0; i < shorter.size(); ++i) {
    const SeedEntry& a = shorter[i];
    const std::string where = "line " + std::to_string(a.line) + ", \"" + NameOf(a) + "\": ";
    if (i >= longer.size()) return where + "is not in the longer log";
    const SeedEntry& b = longer[i];
    if (NameOf(a) != NameOf(b)) return where + "the longer log has \"" + NameOf(b) + "\" here";
    if (a.status != b.status) return where + "status " + a.status + " became " + b.status;
    for (size_t j = 0; j < std::max(a.paragraphs.size(), b.paragraphs.size()); ++j) {
      const std::string old_text = j < a.paragraphs.size() ? a.paragraphs[j] : "";
      const std::string new_text = j < b.paragraphs.size() ? b.paragraphs[j] : "";
      if (old_text == new_text) continue;
      return where + "\"" + old_text + "\" became \"" + new_text + "\"";
    }
  }
  return "";
}

}  // namespace h3rt::lab
