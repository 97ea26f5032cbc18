// Reading the log: the form of an entry, the chain, HEAD.
#include "h3rt/lab/log.h"

#include <chrono>
#include <cstdio>
#include <limits>

#include "h3rt/base/file.h"
#include "h3rt/base/hash.h"
#include "h3rt/lab/schema.h"

namespace h3rt::lab {
namespace {

constexpr char kSchema[] = "lab.log/1";
constexpr size_t kMostLineBytes = 64 * 1024;
constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kMostBackwardsNs = 5 * 60 * kSecond;
constexpr int64_t kMostFutureNs = 10 * 60 * kSecond;

// Walks the lines of a log. One fault ends the walk: nothing behind it can be trusted.
class Reader {
 public:
  Reader(std::string_view text, int64_t now_ns, Findings& findings)
      : text_(text), now_ns_(now_ns), findings_(findings) {
    log_.head_hash = std::string(64, '0');
  }

  void Lines() {
    size_t at = 0;
    while (at < text_.size() && log_.fault.empty()) {
      const size_t end = text_.find('\n', at);
      if (end == std::string_view::npos) {
        log_.torn_bytes = static_cast<int64_t>(text_.size() - at);
        return;
      }
      Line(text_.substr(at, end - at), static_cast<int64_t>(end + 1));
      at = end + 1;
    }
  }

  void Head(std::optional<std::string_view> text) {
    if (!log_.fault.empty()) return;
    if (!text) {
      // The first entry is written before the first HEAD.
      if (log_.entries.size() > 1) Fault("E-LOG-CUT", kHeadFile, 0, "HEAD is not there");
      return;
    }
    const Doc head = ParseHead(*text);
    if (head.is_null()) return Fault("E-LOG-CHAIN", kHeadFile, 1, "not the line of a HEAD");
    log_.head_seq = IntAt(head, "seq");
    const std::string why = WhyNotPrefixOf(log_, head);
    if (!why.empty()) Fault(IsShort(head) ? "E-LOG-CUT" : "E-LOG-CHAIN", kHeadFile, 1, why);
  }

  void Torn() {
    if (log_.torn_bytes == 0 || !log_.fault.empty()) return;
    Add("E-LOG-TORN", kLogFile, LineNumber(),
        std::to_string(log_.torn_bytes) + " bytes after the last line feed");
  }

  Log Take() { return std::move(log_); }

  // Why `head` is no earlier head of the log; empty when it is.
  static std::string WhyNotPrefixOf(const Log& log, const Doc& head) {
    const int64_t seq = IntAt(head, "seq");
    const int64_t bytes = IntAt(head, "bytes");
    const auto count = static_cast<int64_t>(log.entries.size());
    if (seq > count || bytes > log.bytes) {
      return "it has " + std::to_string(count) + " entries in " + std::to_string(log.bytes) +
             " bytes, HEAD says " + std::to_string(seq) + " in " + std::to_string(bytes);
    }
    if (seq < 1) return "HEAD says seq " + std::to_string(seq);
    const LogEntry& entry = log.entries[static_cast<size_t>(seq - 1)];
    if (TextAt(entry.json, "hash") != TextAt(head, "hash")) {
      return "entry " + std::to_string(seq) + " has another hash than HEAD says";
    }
    if (entry.end != bytes) {
      return "entry " + std::to_string(seq) + " ends at byte " + std::to_string(entry.end) +
             ", HEAD says " + std::to_string(bytes);
    }
    return "";
  }

 private:
  int64_t LineNumber() const { return static_cast<int64_t>(log_.entries.size()) + 1; }
  bool IsShort(const Doc& head) const {
    return IntAt(head, "seq") > static_cast<int64_t>(log_.entries.size()) ||
           IntAt(head, "bytes") > log_.bytes;
  }
  void Add(const char* code, const char* file, int64_t line, std::string message) {
    findings_.Add({.code = code, .file = file, .line = line, .message = std::move(message)});
  }
  void Fault(const char* code, const char* file, int64_t line, const std::string& message) {
    log_.fault = std::string(code) + " " + file + ":" + std::to_string(line) + ": " + message;
    Add(code, file, line, message);
  }

  void Line(std::string_view line, int64_t end) {
    const int64_t number = LineNumber();
    const std::string here = "seq " + std::to_string(number) + ": ";
    if (line.size() >= kMostLineBytes) {
      return Fault("E-LOG-FORM", kLogFile, number, here + "a line over 64 KiB");
    }
    std::optional<Doc> entry = ParseDocument(line, kLogFile, number, findings_);
    if (!entry || !entry->is_object()) {
      return Fault("E-LOG-CHAIN", kLogFile, number, here + "not an entry");
    }
    if (const std::string why = WhyNotNext(*entry, line, number); !why.empty()) {
      return Fault("E-LOG-CHAIN", kLogFile, number, here + why);
    }
    if ((TextAt(*entry, "kind") == "genesis") != (number == 1)) {
      return Fault("E-LOG-FORM", kLogFile, number,
                   here + "the genesis is the first entry, and once");
    }
    CheckEntry(*entry, number, findings_);
    CheckTime(*entry, number);
    log_.head_hash = TextAt(*entry, "hash");
    log_.bytes = end;
    log_.entries.push_back({.json = std::move(*entry), .line = number, .end = end});
  }

  std::string WhyNotNext(const Doc& entry, std::string_view line, int64_t number) const {
    if (IntAt(entry, "seq") != number) return "its seq is " + At(entry, "seq").dump();
    if (TextAt(entry, "prev") != log_.head_hash) return "its prev is not the hash before it";
    const std::string hash = TextAt(entry, "hash");
    if (!IsDigest(hash) || LogHash(entry) != hash) return "its hash is not that of its content";
    if (CanonicalText(entry) != line) return "it is not written in the canonical form";
    return "";
  }

  void CheckTime(const Doc& entry, int64_t number) {
    const std::optional<int64_t> ns = ParseUtc(TextAt(entry, "ts"));
    if (!ns) return;  // CheckEntry said so
    if (*ns - now_ns_ > kMostFutureNs) {
      Add("E-TIME", kLogFile, number, "ts " + TextAt(entry, "ts") + " is in the future");
    } else if (last_ns_ - *ns > kMostBackwardsNs) {
      Add("W-TIME", kLogFile, number, "ts " + TextAt(entry, "ts") + " is before the entry above");
    }
    last_ns_ = *ns;
  }

  std::string_view text_;
  int64_t now_ns_;
  Findings& findings_;
  Log log_;
  int64_t last_ns_ = std::numeric_limits<int64_t>::min() / 2;
};

// A file's text, nullopt when there is none; what cannot be read is a finding and sets `failed`.
std::optional<std::string> ReadIfThere(const Store& store, const char* file, bool& failed,
                                       Findings& findings) {
  absl::StatusOr<std::string> text = ReadFile(store.PathOf(file));
  if (text.ok()) return *std::move(text);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  failed = true;
  findings.Add({.code = "E-IO", .file = file, .message = MessageOf(text.status())});
  return std::nullopt;
}

}  // namespace

std::string LogHash(const Doc& entry) {
  const std::string prev = TextAt(entry, "prev");
  if (!entry.is_object() || !IsDigest(prev)) return "";
  std::string bytes(kSchema, sizeof(kSchema));  // with its zero
  for (size_t i = 0; i < prev.size(); i += 2) {
    const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    bytes.push_back(static_cast<char>(digit(prev[i]) * 16 + digit(prev[i + 1])));
  }
  Doc body = entry;
  body.erase("hash");
  bytes += CanonicalText(body);
  return DigestOfText(bytes);
}

Doc ParseHead(std::string_view text) {
  Findings ignored;
  if (text.empty() || text.back() != '\n') return nullptr;
  text.remove_suffix(1);
  const std::optional<Doc> head = ParseDocument(text, kHeadFile, 1, ignored);
  const bool sound = head && head->is_object() && head->size() == 3 &&
                     At(*head, "bytes").is_number_integer() && IsDigest(TextAt(*head, "hash")) &&
                     At(*head, "seq").is_number_integer() && CanonicalText(*head) == text;
  return sound ? *head : Doc();
}

Log ParseLog(std::string_view text, std::optional<std::string_view> head, const std::string& now,
             Findings& findings) {
  Reader reader(text, ParseUtc(now.empty() ? UtcNow() : now).value_or(0), findings);
  reader.Lines();
  reader.Head(head);
  reader.Torn();
  return reader.Take();
}

std::optional<Log> LoadLog(const Store& store, Findings& findings, const std::string& now) {
  bool failed = false;
  // HEAD first: it is written after the log, so an append between the two reads is no fault.
  const std::optional<std::string> head = ReadIfThere(store, kHeadFile, failed, findings);
  const std::optional<std::string> text = ReadIfThere(store, kLogFile, failed, findings);
  if (failed) return std::nullopt;
  return ParseLog(text.value_or(""), head, now, findings);
}

void VerifyAgainst(const Log& log, const Doc& head, std::string_view name, Findings& findings) {
  const std::string why = Reader::WhyNotPrefixOf(log, head);
  if (why.empty()) return;
  const bool cut = IntAt(head, "seq") > static_cast<int64_t>(log.entries.size()) ||
                   IntAt(head, "bytes") > log.bytes;
  findings.Add({.code = cut ? "E-LOG-CUT" : "E-LOG-CHAIN",
                .file = kLogFile,
                .message = "against " + std::string(name) + ": " + why});
}

Doc EmptyEntry(std::string_view kind, std::string_view title) {
  Doc entry = Doc::object();
  for (const Field& field : LogEntryShape().fields) {
    entry[field.name] = field.shape.kind == Kind::kList ? Doc::array() : Doc();
  }
  entry["schema"] = kSchema;
  entry["kind"] = kind;
  entry["title"] = title;
  return entry;
}

void CheckEntry(const Doc& entry, int64_t line, Findings& findings) {
  FormCheck check{.file = kLogFile, .line = line, .findings = findings};
  std::string pointer;
  CheckShape(entry, LogEntryShape(), pointer, check);
  if (TextAt(entry, "kind") == "import") return;  // another author's words
  const auto lint = [&](const std::string& where, const Doc& text) {
    if (!text.is_string()) return;
    const std::string number = FirstUncitedNumber(text.get_ref<const std::string&>());
    if (!number.empty()) check.Add("W-NUMBER", where, "cites nothing for " + number);
  };
  for (const char* name : {"title", "hypothesis", "decision"}) {
    lint(std::string("/") + name, At(entry, name));
  }
  for (const char* name : {"actions", "alternatives", "authorizes", "forbids", "not_done"}) {
    const Doc& texts = At(entry, name);
    for (size_t i = 0; texts.is_array() && i < texts.size(); ++i) {
      lint(std::string("/") + name + "/" + std::to_string(i), texts[i]);
    }
  }
}

std::string UtcNow() {
  using std::chrono::floor;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  const std::chrono::sys_days days{floor<std::chrono::days>(std::chrono::seconds(ns / kSecond))};
  const std::chrono::year_month_day date(days);
  const int64_t second = ns / kSecond - days.time_since_epoch().count() * int64_t{86400};
  char text[64];
  std::snprintf(text, sizeof(text), "%04d-%02u-%02uT%02d:%02d:%02d.%09dZ",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(second / 3600),
                static_cast<int>(second / 60 % 60), static_cast<int>(second % 60),
                static_cast<int>(ns % kSecond));
  return text;
}

std::optional<int64_t> ParseUtc(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd.dddddddddZ";
  if (text.size() != kForm.size()) return std::nullopt;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == 'd' ? !digit : text[i] != kForm[i]) return std::nullopt;
  }
  const auto number = [&](size_t at, size_t length) {
    int64_t value = 0;
    for (const char c : text.substr(at, length)) value = value * 10 + (c - '0');
    return value;
  };
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(number(0, 4))),
                                         std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                         std::chrono::day(static_cast<unsigned>(number(8, 2))));
  const int64_t hour = number(11, 2);
  const int64_t minute = number(14, 2);
  const int64_t second = number(17, 2);
  // Nanoseconds in 64 bits reach from 1678 to 2261.
  const bool in_range = number(0, 4) >= 1970 && number(0, 4) <= 2261;
  if (!date.ok() || !in_range || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return ((days * 24 + hour) * 60 + minute) * 60 * kSecond + second * kSecond + number(20, 9);
}

}  // namespace h3rt::lab
