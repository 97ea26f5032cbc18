#include "h3rt/lab/closure.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <deque>
#include <mutex>
#include <set>
#include <span>

#include "h3rt/base/file.h"
#include "h3rt/base/hash.h"

namespace h3rt::lab {
namespace {

// Includes in quotes are the project's own, but for the packages that are written so; <> are the
// toolchain's, but for those that would name the project.
constexpr const char* kPackages[] = {"absl/",   "benchmark/", "CLI/",   "dnnl",
                                     "fmt/",    "gmock/",     "gtest/", "nlohmann/",
                                     "oneapi/", "openssl/",   "spdlog/"};
constexpr const char* kProjectFolders[] = {"h3rt/", "apps/", "research/", "tests/", "bench/"};

bool IsProject(std::string_view name, bool quoted) {
  const auto begins = [&](std::string_view with) { return name.substr(0, with.size()) == with; };
  return quoted ? std::none_of(std::begin(kPackages), std::end(kPackages), begins)
                : std::any_of(std::begin(kProjectFolders), std::end(kProjectFolders), begins);
}

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)); }

std::string HexOf(std::string_view text) { return Sha256Hex(std::as_bytes(std::span(text))); }

// The end of the literal that begins at `at` (a quote), or of the line for one that never ends.
size_t EndOfLiteral(std::string_view text, size_t at, bool raw) {
  if (raw) {
    const size_t open = text.find('(', at);
    if (open == std::string_view::npos) return text.size();
    const std::string close = ")" + std::string(text.substr(at + 1, open - at - 1)) + "\"";
    const size_t end = text.find(close, open);
    return end == std::string_view::npos ? text.size() : end + close.size();
  }
  for (size_t i = at + 1; i < text.size() && text[i] != '\n'; ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == text[at]) {
      return i + 1;
    }
  }
  return std::min(text.find('\n', at), text.size());
}

// Calls `literal` and `code` for the parts of a text in order; comments are given as one space.
template <typename Literal, typename Code>
void Split(std::string_view text, const Literal& literal, const Code& code) {
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    if (c == '/' && next == '/') {
      i = std::min(text.find('\n', i), text.size());
    } else if (c == '/' && next == '*') {
      const size_t end = text.find("*/", i + 2);
      code(' ');
      i = end == std::string_view::npos ? text.size() : end + 2;
    } else if (c == '"' ||
               (c == '\'' && (i == 0 || !std::isxdigit(static_cast<unsigned char>(text[i - 1]))))) {
      const bool raw = c == '"' && i > 0 && text[i - 1] == 'R';
      const size_t end = EndOfLiteral(text, i, raw);
      literal(text.substr(i, end - i));
      i = end;
    } else {
      code(c);
      ++i;
    }
  }
}

// Lines that end in a backslash go on.
std::string JoinLines(std::string_view text) {
  std::string joined;
  joined.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r') continue;
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == '\n') {
      ++i;
    } else {
      joined.push_back(text[i]);
    }
  }
  return joined;
}

std::string WithoutComments(std::string_view text) {
  std::string out;
  const auto put = [&](auto part) { out += part; };
  Split(text, put, put);
  return out;
}

// One line of a preprocessed include directive: what follows "#include", trimmed; empty for others.
std::string_view IncludeOperand(std::string_view line) {
  const auto skip = [&] {
    while (!line.empty() && IsSpace(line[0])) line.remove_prefix(1);
  };
  skip();
  if (line.substr(0, 1) == "#") {
    line.remove_prefix(1);
  } else if (line.substr(0, 2) == "%:") {
    line.remove_prefix(2);
  } else {
    return {};
  }
  skip();
  for (const std::string_view word : {"include_next", "include", "import"}) {
    if (line.substr(0, word.size()) != word) continue;
    line.remove_prefix(word.size());
    if (!line.empty() && IsWord(line[0])) return {};
    skip();
    return line;
  }
  return {};
}

absl::Status CollectIncludes(std::string_view text, bool strict, std::string_view where,
                             std::set<std::string>& found) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view operand = IncludeOperand(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (operand.empty()) continue;
    const char close = operand[0] == '"' ? '"' : operand[0] == '<' ? '>' : '\0';
    const size_t stop = close == '\0' ? std::string_view::npos : operand.find(close, 1);
    if (stop == std::string_view::npos) {
      if (!strict) continue;
      return InvalidArgument({.what = "an include that cannot be followed",
                              .got = std::string(operand.substr(0, 60)),
                              .wanted = "a name in quotes",
                              .where = std::string(where)});
    }
    const std::string_view name = operand.substr(1, stop - 1);
    if (IsProject(name, close == '"')) found.emplace(name);
  }
  return absl::OkStatus();
}

struct CachedFile {
  const SourceFacts* facts = nullptr;
  struct stat stat = {};
  bool racy = true;  // written so shortly before it was read that a change may not show
};

bool SameStat(const struct stat& a, const struct stat& b) {
  return a.st_size == b.st_size && a.st_ino == b.st_ino && a.st_dev == b.st_dev &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec &&
         a.st_ctim.tv_sec == b.st_ctim.tv_sec && a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ScanIncludes(std::string_view text,
                                                      std::string_view where) {
  const std::string joined = JoinLines(text);
  // Both the text as it is, where a lexer that lost its way hides nothing, and without comments,
  // where "/* */ #include" shows.
  std::set<std::string> found;
  H3RT_RETURN_IF_ERROR(CollectIncludes(WithoutComments(joined), true, where, found));
  H3RT_RETURN_IF_ERROR(CollectIncludes(joined, false, where, found));
  return std::vector<std::string>(found.begin(), found.end());
}

std::string NormalisedSource(std::string_view text) {
  std::string out;
  bool gap = false, line_start = true, directive = false;
  const auto put = [&](std::string_view part) {
    if (gap && !out.empty() && IsWord(out.back()) && IsWord(part[0])) out.push_back(' ');
    gap = false;
    directive |= line_start && part[0] == '#';
    line_start = false;
    out.append(part);
  };
  const auto code = [&](char c) {
    if (!IsSpace(c)) {
      put(std::string_view(&c, 1));
      return;
    }
    gap = true;
    if (c != '\n') return;
    if (directive) out.push_back('\n');  // the end of its line ends a directive
    line_start = true;
    directive = false;
  };
  Split(JoinLines(text), put, code);
  return out;
}

absl::StatusOr<SourceFacts> FactsOfText(std::string_view text, std::string_view where) {
  SourceFacts facts;
  facts.sha256 = HexOf(text);
  facts.code_sha256 = HexOf(NormalisedSource(text));
  H3RT_ASSIGN_OR_RETURN(facts.includes, ScanIncludes(text, where));
  return facts;
}

bool IsPlainPath(std::string_view path) {
  if (path.empty() || path[0] == '/' || path.find('\0') != std::string_view::npos) return false;
  while (true) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    if (part.empty() || part == "." || part == "..") return false;
    if (end == path.size()) return true;
    path.remove_prefix(end + 1);
  }
}

absl::StatusOr<const SourceFacts*> FactsOfFile(const std::string& root, const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, CachedFile> cache;
  static std::deque<SourceFacts> versions;  // callers hold pointers: none ever goes
  if (!IsPlainPath(path)) {
    return InvalidArgument({.what = "a source outside the project", .got = path});
  }
  const std::string full = root + "/" + path;
  struct stat now = {};
  if (::stat(full.c_str(), &now) != 0 || !S_ISREG(now.st_mode)) {
    return NotFound({.what = "no such source", .got = path});
  }
  const std::lock_guard<std::mutex> lock(mutex);
  CachedFile& entry = cache[full];
  if (entry.facts && !entry.racy && SameStat(entry.stat, now)) return entry.facts;
  H3RT_ASSIGN_OR_RETURN(const std::string text, ReadFile(full, uint64_t{64} << 20));
  H3RT_ASSIGN_OR_RETURN(SourceFacts facts, FactsOfText(text, path));
  timespec clock = {};
  ::clock_gettime(CLOCK_REALTIME, &clock);
  if (!entry.facts || entry.facts->sha256 != facts.sha256) {
    entry.facts = &versions.emplace_back(std::move(facts));
  }
  entry.stat = now;
  const double age = static_cast<double>(clock.tv_sec - now.st_ctim.tv_sec) +
                     1e-9 * static_cast<double>(clock.tv_nsec - now.st_ctim.tv_nsec);
  entry.racy = age < 0.1;  // file systems stamp with a clock of up to 10 ms
  return entry.facts;
}

absl::StatusOr<Closure> CloseOver(const std::vector<std::string>& roots,
                                  const FactsLookup& lookup) {
  Closure closure;
  std::vector<std::pair<std::string, std::string>> open;  // path, who wants it
  for (const std::string& root : roots) open.emplace_back(root, "");
  while (!open.empty()) {
    const auto [path, from] = std::move(open.back());
    open.pop_back();
    if (closure.count(path)) continue;
    const absl::StatusOr<const SourceFacts*> facts = lookup(path);
    if (!facts.ok()) return from.empty() ? facts.status() : WithContext(facts.status(), from);
    closure[path] = *facts;
    for (const std::string& include : (*facts)->includes) open.emplace_back(include, path);
  }
  return closure;
}

std::string DigestOfClosure(const Closure& closure, bool code) {
  Sha256 hash;
  for (const auto& [path, facts] : closure) {
    hash.Update((code ? facts->code_sha256 : facts->sha256) + "  " + path + "\n");
  }
  return hash.Finish();
}

absl::StatusOr<std::string> DigestOfHarness(const FactsLookup& lookup, bool host) {
  Closure closure;
  const std::span<const char* const> roots =
      host ? std::span<const char* const>(kHostHarnessSources) : kHarnessSources;
  for (const char* root : roots) {
    H3RT_ASSIGN_OR_RETURN(const SourceFacts* const facts, lookup(root));
    closure[root] = facts;
    for (const std::string& include : facts->includes) {
      if (include.size() < 4 || include.substr(include.size() - 4) != ".cuh") continue;
      H3RT_ASSIGN_OR_RETURN(closure[include], lookup(include));
    }
  }
  return DigestOfClosure(closure, /*code=*/true);
}

}  // namespace h3rt::lab
