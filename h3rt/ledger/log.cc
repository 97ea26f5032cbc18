// Reading the log: the form of an entry, the chain, HEAD.
#include "h3rt/ledger/log.h"

#include <limits>

#include "h3rt/base/file.h"
#include "h3rt/ledger/commit.h"
#include "h3rt/ledger/schema.h"

namespace h3rt::lab {
namespace {

constexpr char kSchema[] = "lab.log/1";
constexpr size_t kMostLineBytes = 64 * 1024;
constexpr int64_t kMinuteNs = 60'000'000'000;
constexpr int64_t kMostBackwardsNs = 5 * kMinuteNs;
constexpr int64_t kMostFutureNs = 10 * kMinuteNs;

// The form of an entry: fields, types, closed sets, and numbers in text that cite nothing.
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
  for (const char* name : {"title", "hypothesis", "decision", "actions", "alternatives",
                           "authorizes", "forbids", "not_done"}) {
    const std::string where = std::string("/") + name;
    const Doc& said = At(entry, name);
    lint(where, said);
    for (size_t i = 0; said.is_array() && i < said.size(); ++i) {
      lint(where + "/" + std::to_string(i), said[i]);
    }
  }
}

// Why `head` is no earlier head of the log, with the code of it; empty when it is.
struct HeadFault {
  const char* code = "E-LOG-CHAIN";
  std::string why = {};
};
HeadFault FaultOfHead(const Log& log, const Doc& head) {
  const int64_t seq = IntAt(head, "seq");
  const int64_t bytes = IntAt(head, "bytes");
  const auto count = static_cast<int64_t>(log.entries.size());
  if (seq > count || bytes > log.bytes) {
    return {.code = "E-LOG-CUT",
            .why = "it has " + std::to_string(count) + " entries in " + std::to_string(log.bytes) +
                   " bytes, HEAD says " + std::to_string(seq) + " in " + std::to_string(bytes)};
  }
  if (seq < 1) return {.why = "HEAD says seq " + std::to_string(seq)};
  const LogEntry& entry = log.entries[static_cast<size_t>(seq - 1)];
  const std::string name = "entry " + std::to_string(seq);
  if (TextAt(entry.json, "hash") != TextAt(head, "hash")) {
    return {.why = name + " has another hash than HEAD says"};
  }
  if (entry.end == bytes) return {};
  return {.why = name + " ends at byte " + std::to_string(entry.end) + ", HEAD says " +
                 std::to_string(bytes)};
}

// Walks the lines of a log. One fault ends the walk: nothing behind it can be trusted.
class Reader {
 public:
  // `before` entries, the last with the hash `prev`, were read already.
  Reader(const std::string& now, Findings& findings, size_t before = 0,
         const std::string& prev = std::string(64, '0'))
      : now_ns_(ParseUtc(now.empty() ? UtcNow() : now).value_or(0)),
        findings_(findings),
        number_(static_cast<int64_t>(before)) {
    log_.head_hash = prev;
  }

  void Lines(std::string_view text) {
    while (log_.fault.empty()) {
      const std::string_view rest = text.substr(static_cast<size_t>(log_.bytes));
      const size_t end = rest.find('\n');
      if (end == std::string_view::npos) {
        log_.torn_bytes = static_cast<int64_t>(rest.size());
        return;
      }
      Line(rest.substr(0, end));
    }
  }

  void Line(std::string_view line) {
    ++number_;
    if (line.size() >= kMostLineBytes) {
      return LineFault("E-LOG-FORM",
                       "a line of " + std::to_string(line.size()) + " bytes, which is over 64 KiB");
    }
    std::optional<Doc> entry = ParseDocument(line, kLogFile, number_, findings_);
    if (!entry || !entry->is_object()) return LineFault("E-LOG-CHAIN", "not an entry");
    if (const std::string why = WhyNotNext(*entry, line); !why.empty()) {
      return LineFault("E-LOG-CHAIN", why);
    }
    if ((TextAt(*entry, "kind") == "genesis") != (number_ == 1)) {
      return LineFault("E-LOG-FORM", "the genesis is the first entry, and once");
    }
    CheckEntry(*entry, number_, findings_);
    CheckTime(TextAt(*entry, "ts"));
    log_.head_hash = TextAt(*entry, "hash");
    log_.bytes += static_cast<int64_t>(line.size()) + 1;
    log_.entries.push_back({.json = *std::move(entry), .line = number_, .end = log_.bytes});
  }

  // HEAD, then what is behind the last line.
  Log Finish(std::optional<std::string_view> head) {
    if (log_.fault.empty()) Head(head);
    if (log_.torn_bytes > 0 && log_.fault.empty()) {
      Add("E-LOG-TORN", kLogFile, number_ + 1,
          std::to_string(log_.torn_bytes) + " bytes after the last line feed");
    }
    return std::move(log_);
  }

 private:
  void Add(const char* code, const char* file, int64_t line, const std::string& message) {
    findings_.Add({.code = code, .file = file, .line = line, .message = message});
  }
  void Fault(const char* code, const char* file, int64_t line, const std::string& message) {
    log_.fault = std::string(code) + " " + file + ":" + std::to_string(line) + ": " + message;
    Add(code, file, line, message);
  }
  void LineFault(const char* code, const std::string& message) {
    Fault(code, kLogFile, number_, "seq " + std::to_string(number_) + ": " + message);
  }

  void Head(std::optional<std::string_view> text) {
    if (!text) {
      // The first entry is written before the first HEAD.
      if (log_.entries.size() > 1) Fault("E-LOG-CUT", kHeadFile, 0, "HEAD is not there");
      return;
    }
    const Doc head = ParseHead(*text);
    if (head.is_null()) return Fault("E-LOG-CHAIN", kHeadFile, 1, "not the line of a HEAD");
    log_.head_seq = IntAt(head, "seq");
    const HeadFault fault = FaultOfHead(log_, head);
    if (!fault.why.empty()) Fault(fault.code, kHeadFile, 1, fault.why);
  }

  std::string WhyNotNext(const Doc& entry, std::string_view line) const {
    if (IntAt(entry, "seq") != number_) return "its seq is " + At(entry, "seq").dump();
    if (TextAt(entry, "prev") != log_.head_hash) return "its prev is not the hash before it";
    const std::string hash = TextAt(entry, "hash");
    if (!IsDigest(hash) || LogHash(entry) != hash) return "its hash is not that of its content";
    if (CanonicalText(entry) != line) return "it is not written in the canonical form";
    return "";
  }

  void CheckTime(const std::string& ts) {
    const std::optional<int64_t> ns = ParseUtc(ts);
    if (!ns) return;  // CheckEntry said so
    if (*ns - now_ns_ > kMostFutureNs) {
      Add("E-TIME", kLogFile, number_, "ts " + ts + " is in the future");
    } else if (last_ns_ - *ns > kMostBackwardsNs) {
      Add("W-TIME", kLogFile, number_, "ts " + ts + " is before the entry above");
    }
    last_ns_ = *ns;
  }

  int64_t now_ns_;
  Findings& findings_;
  int64_t number_;  // of the line
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
  Reader reader(now, findings);
  reader.Lines(text);
  return reader.Finish(head);
}

void CheckNextLine(const Log& log, std::string_view line, Findings& findings) {
  Reader("", findings, log.entries.size(), log.head_hash).Line(line);
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
  const HeadFault fault = FaultOfHead(log, head);
  if (fault.why.empty()) return;
  findings.Add({.code = fault.code,
                .file = kLogFile,
                .message = "against " + std::string(name) + ": " + fault.why});
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

}  // namespace h3rt::lab
