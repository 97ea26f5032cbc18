#include "h3rt/ledger/store.h"

#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>

#include "h3rt/base/check.h"
#include "h3rt/base/file.h"

namespace h3rt::lab {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHead = "{\"header\":";
constexpr std::string_view kHeadEnd = ",\"records\":[";
constexpr std::string_view kTail = "]}";
constexpr int64_t kMostEvidenceBytes = int64_t{8} << 20;
constexpr uint64_t kMostRaw = 256ull << 20;  // a blob that claims more is not ours

bool IsIdCharacter(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

const std::string& IdOf(const Record& record) {
  static const std::string* const none = new std::string();
  const Doc& id = At(record.json, "id");
  return id.is_string() ? id.get_ref<const std::string&>() : *none;
}

std::vector<std::string_view> SplitLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

// The line (1-based) at which the layout is not a record a line; 0 when it is. Strips what frames
// header and records.
int64_t BadLayout(std::string_view text, std::vector<std::string_view>& lines) {
  if (text.empty() || text.back() != '\n') return static_cast<int64_t>(lines.size());
  if (lines.size() < 2 || !lines[0].starts_with(kHead) || !lines[0].ends_with(kHeadEnd)) return 1;
  if (lines.back() != kTail) return static_cast<int64_t>(lines.size());
  lines.pop_back();
  lines[0].remove_prefix(kHead.size());
  lines[0].remove_suffix(kHeadEnd.size());
  for (size_t i = 1; i < lines.size(); ++i) {
    const bool last = i + 1 == lines.size();
    if (!lines[i].starts_with('{') || !lines[i].ends_with(last ? "}" : "},")) {
      return static_cast<int64_t>(i) + 1;
    }
    if (!last) lines[i].remove_suffix(1);
  }
  return 0;
}

// Not a record a line: the reader of whole documents says where it breaks, or that only the layout
// is wrong.
std::optional<Registry> LoadOtherLayout(std::string_view text, int64_t line, Findings& findings) {
  std::optional<Doc> whole = ParseDocument(text, kRegistryFile, 1, findings);
  if (!whole) return std::nullopt;
  findings.Add("E-CANON", kRegistryFile, line, "",
               "not laid out as header, a record a line and the end");
  const Doc& records = At(*whole, "records");
  if (!At(*whole, "header").is_object() || !records.is_array()) return std::nullopt;
  Registry registry;
  registry.header = At(*whole, "header");
  for (const Doc& record : records) registry.records.push_back({record, line});
  return registry;
}

std::optional<Doc> ParseLine(std::string_view text, int64_t line, std::string_view file,
                             Findings& findings) {
  std::optional<Doc> out = ParseDocument(text, file, line, findings);
  if (out && CanonicalText(*out) != text) {
    findings.Add("E-CANON", file, line, "", "keys are not sorted or there is space between them");
  }
  return out;
}

void CheckRecords(Registry& registry, Findings& findings) {
  std::string previous;
  for (Record& record : registry.records) {
    const std::string id = IdOf(record);
    if (id < previous) {
      findings.Add("E-ORDER", kRegistryFile, record.line, "/id", id + " comes after " + previous);
    }
    previous = id;
    if (!record.json.is_object()) continue;
    // Taken out and put back, which is quicker than a copy of the rest.
    auto& members = record.json.get_ref<Doc::object_t&>();
    auto digest = members.extract("record_digest");
    const std::string wanted = DigestOf(record.json);
    if (!digest.empty()) members.insert(std::move(digest));
    const Doc& found = At(record.json, "record_digest");
    // Absent or of another type: the schema says so.
    if (found.is_string() && found.get_ref<const std::string&>() != wanted) {
      findings.Add("E-DIGEST", kRegistryFile, record.line, "/record_digest",
                   id + " has another digest than its content: " + wanted);
    }
  }
}

// Where the parts of a path lead: false with a reason when a link leaves the root or goes nowhere.
std::string WhyOutside(const std::string& root, std::string_view relative) {
  std::error_code error;
  struct stat info = {};
  for (size_t end = 0; end != std::string_view::npos;) {
    end = relative.find('/', end == 0 ? 0 : end + 1);
    const std::string prefix = root + "/" + std::string(relative.substr(0, end));
    if (::lstat(prefix.c_str(), &info) != 0) return {};  // not there: nothing to open
    if (S_ISLNK(info.st_mode)) {
      const std::string target = fs::canonical(prefix, error).string();
      if (error) return "a link to nowhere";
      const std::string inside = fs::canonical(root, error).string();
      if (error || !(target == inside || target.starts_with(inside + "/"))) {
        return "a link that leaves the repository";
      }
      if (::stat(prefix.c_str(), &info) != 0) return "a link to nowhere";
    }
    if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return "a device, pipe or socket";
  }
  return {};
}

// Files below a folder, relative to the root, sorted; E-PATH for links.
std::vector<std::string> ListFiles(const Store& store, const std::string& folder, int64_t& bytes,
                                   Findings& findings) {
  std::vector<std::string> out;
  std::error_code error;
  fs::directory_iterator it(store.PathOf(folder), error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    const std::string path = folder + "/" + it->path().filename().string();
    const fs::file_status status = it->symlink_status(error);
    if (error) break;
    if (fs::is_directory(status)) {
      const std::vector<std::string> below = ListFiles(store, path, bytes, findings);
      out.insert(out.end(), below.begin(), below.end());
    } else if (fs::is_regular_file(status)) {
      bytes += static_cast<int64_t>(it->file_size(error));
      out.push_back(path);
    } else {
      findings.Add({.code = "E-PATH", .file = path, .message = "not a regular file"});
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    findings.Add({.code = "E-IO", .file = folder, .message = error.message()});
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::optional<Evidence> LoadOne(const Store& store, const std::string& file, Findings& findings) {
  const std::optional<std::string> text = ReadText(store, file, findings);
  if (!text) return std::nullopt;
  Evidence out{.digest = DigestOfText(*text), .file = file, .json = {}};
  const std::string name = file.substr(file.rfind('/') + 1);
  const auto misplaced = [&](const std::string& message) {
    findings.Add({.code = "E-EV-NAME", .file = file, .message = message});
    return std::nullopt;
  };
  // Before the content: what was altered is not worth reading.
  if (name != out.digest + ".json") {
    return misplaced("its content has the hash " + out.digest);
  }
  std::optional<Doc> json = ParseLine(*text, 1, file, findings);
  if (!json) return std::nullopt;
  out.json = *std::move(json);
  const std::string wanted = std::string(kEvidenceFolder) + "/" + DeviceFolder(out.json) + "/" +
                             TextAt(out.json, "experiment") + "/" + name;
  if (file != wanted) return misplaced("its place is " + wanted);
  return out;
}

// Writes a file that never changes. A second time is no change.
absl::Status WriteImmutable(const std::string& path, std::string_view bytes) {
  const absl::StatusOr<std::string> there = ReadFile(path);
  if (there.ok()) {
    if (*there == bytes) return absl::OkStatus();
    return DataLoss({.what = "evidence", .got = "another content under its name", .where = path});
  }
  if (there.status().code() != absl::StatusCode::kNotFound) return there.status();
  return WriteFileAtomically(path, bytes);
}

absl::Status Broken(std::string got, std::string wanted = {}) {
  return DataLoss({.what = "compressed blob",
                   .got = std::move(got),
                   .wanted = std::move(wanted),
                   .where = "zlib"});
}

}  // namespace

std::string Store::PathOf(std::string_view relative) const {
  return root + "/" + std::string(relative);
}

std::optional<std::string> ReadText(const Store& store, std::string_view relative,
                                    Findings& findings) {
  absl::StatusOr<std::string> text = ReadFile(store.PathOf(relative));
  if (text.ok() && !text->starts_with(kLfsPointer)) return *std::move(text);
  const bool large = text.status().code() == absl::StatusCode::kInvalidArgument;
  findings.Add({.code = text.ok() ? "E-ART-LFS"
                        : large   ? "E-JSON-LIMIT"
                                  : "E-IO",
                .file = std::string(relative),
                .message = text.ok() ? "a Git LFS pointer" : MessageOf(text.status())});
  return std::nullopt;
}

bool IsId(std::string_view text) {
  if (text.size() < 3 || text.size() > 80) return false;
  if (text.front() == '-' || text.back() == '-') return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!IsIdCharacter(text[i]) && (text[i] != '-' || text[i - 1] == '-')) return false;
  }
  return true;
}

std::string WhyNotRelative(std::string_view path) {
  if (path.empty()) return "an empty path";
  if (path.front() == '/') return "an absolute path";
  if (path.find('\\') != std::string_view::npos) return "a backslash";
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") {
      return "the part \"" + std::string(part) + "\"";
    }
    begin = end + 1;
  }
  return {};
}

bool CheckPath(const Store& store, std::string_view relative, std::string_view file, int64_t line,
               std::string_view pointer, Findings& findings) {
  std::string why = WhyNotRelative(relative);
  if (why.empty()) why = WhyOutside(store.root, relative);
  if (why.empty()) return true;
  findings.Add("E-PATH", file, line, pointer, "\"" + std::string(relative) + "\": " + why);
  return false;
}

const Record* Registry::Find(std::string_view id) const {
  const auto it =
      std::lower_bound(records.begin(), records.end(), id,
                       [](const Record& r, std::string_view wanted) { return IdOf(r) < wanted; });
  return it == records.end() || IdOf(*it) != id ? nullptr : &*it;
}

std::optional<Registry> LoadRegistry(const Store& store, Findings& findings) {
  const std::optional<std::string> text = ReadText(store, kRegistryFile, findings);
  if (!text) return std::nullopt;
  std::vector<std::string_view> lines = SplitLines(*text);
  std::optional<Registry> out = Registry();
  if (const int64_t line = BadLayout(*text, lines); line != 0 || lines.empty()) {
    out = LoadOtherLayout(*text, line, findings);
    if (!out) return std::nullopt;
  } else {
    bool whole = true;
    for (size_t i = 0; i < lines.size(); ++i) {
      const int64_t number = static_cast<int64_t>(i) + 1;
      std::optional<Doc> parsed = ParseLine(lines[i], number, kRegistryFile, findings);
      whole = whole && parsed.has_value();
      if (!parsed) continue;
      if (i == 0) {
        out->header = *std::move(parsed);
      } else {
        out->records.push_back({*std::move(parsed), number});
      }
    }
    if (!whole) return std::nullopt;
  }
  CheckRecords(*out, findings);
  std::stable_sort(out->records.begin(), out->records.end(),
                   [](const Record& a, const Record& b) { return IdOf(a) < IdOf(b); });
  return out;
}

std::string RegistryText(const Registry& registry) {
  std::string out(kHead);
  out += CanonicalText(registry.header) + std::string(kHeadEnd) + "\n";
  for (size_t i = 0; i < registry.records.size(); ++i) {
    out += CanonicalText(registry.records[i].json);
    out += i + 1 < registry.records.size() ? ",\n" : "\n";
  }
  return out + std::string(kTail) + "\n";
}

void RefreshDigest(Doc& record) {
  record["record_digest"] = DigestWithout(record, "record_digest");
}

std::optional<Doc> LoadPolicy(const Store& store, Findings& findings) {
  const std::optional<std::string> text = ReadText(store, kPolicyFile, findings);
  if (!text) return std::nullopt;
  return ParseDocument(*text, kPolicyFile, 1, findings);
}

std::map<std::string, Evidence> LoadEvidence(const Store& store, Findings& findings) {
  std::map<std::string, Evidence> out;
  int64_t bytes = 0;
  for (const std::string& file : ListFiles(store, kEvidenceFolder, bytes, findings)) {
    if (!file.ends_with(".json") || file == kInventoryFile) continue;
    std::optional<Evidence> evidence = LoadOne(store, file, findings);
    if (!evidence) continue;
    std::string digest = evidence->digest;
    out.emplace(std::move(digest), *std::move(evidence));
  }
  if (bytes > kMostEvidenceBytes) {
    findings.Add({.code = "E-EV-SIZE",
                  .file = kEvidenceFolder,
                  .message = std::to_string(bytes) + " bytes, wanted at most " +
                             std::to_string(kMostEvidenceBytes)});
  }
  return out;
}

std::string DeviceFolder(const Doc& envelope) {
  if (TextAt(envelope, "word") == "assembled") return "nvcc";
  std::string out;
  for (const char c : TextAt(At(At(envelope, "environment"), "class"), "device")) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (IsIdCharacter(lower)) {
      out += lower;
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out.empty() ? "host" : out;
}

absl::StatusOr<std::string> WriteEvidence(const Store& store, const NewEvidence& evidence) {
  const std::string experiment = TextAt(evidence.envelope, "experiment");
  if (!IsId(experiment)) {
    return InvalidArgument({.what = "evidence: experiment", .got = experiment, .wanted = "an id"});
  }
  Doc envelope = evidence.envelope;
  std::map<std::string, Doc> named;
  for (const Doc& blob : At(envelope, "blobs")) named[TextAt(blob, "name")] = blob;
  envelope["blobs"] = Doc::array();
  std::map<std::string, std::string> stored;  // hash -> stream
  for (const auto& [name, bytes] : evidence.blobs) {
    const Doc& known = named[name];
    const bool as_is = known.is_object() && TextAt(known, "sha256") == DigestOfText(bytes);
    const std::string stream = as_is ? bytes : Deflate(bytes);
    const std::string digest = DigestOfText(stream);
    envelope["blobs"].push_back(as_is ? known
                                      : Doc{{"name", name},
                                            {"sha256", digest},
                                            {"bytes", stream.size()},
                                            {"raw_bytes", bytes.size()},
                                            {"encoding", "zlib"}});
    stored[digest] = stream;
  }
  const std::string text = CanonicalText(envelope);
  Findings findings;
  const std::optional<Doc> again = ParseDocument(text, "evidence", 1, findings);
  if (!again) {
    return InvalidArgument({.what = "evidence that cannot be read back",
                            .got = Findings::ToText(findings.Sorted()[0])});
  }
  const std::string folder =
      std::string(kEvidenceFolder) + "/" + DeviceFolder(*again) + "/" + experiment;
  std::error_code error;
  fs::create_directories(store.PathOf(folder), error);
  if (error) return ErrnoStatus(error.value(), "create", store.PathOf(folder));
  for (const auto& [digest, stream] : stored) {
    H3RT_RETURN_IF_ERROR(WriteImmutable(store.PathOf(folder + "/" + digest + ".z"), stream));
  }
  const std::string digest = DigestOfText(text);
  H3RT_RETURN_IF_ERROR(WriteImmutable(store.PathOf(folder + "/" + digest + ".json"), text));
  return digest;
}

std::string Deflate(std::string_view raw) {
  uLongf size = ::compressBound(static_cast<uLong>(raw.size()));
  std::string out(size, '\0');
  const int rc = ::compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                             reinterpret_cast<const Bytef*>(raw.data()),
                             static_cast<uLong>(raw.size()), Z_BEST_COMPRESSION);
  H3RT_CHECK(rc == Z_OK);  // only memory or a wrong bound could fail
  out.resize(size);
  return out;
}

absl::StatusOr<std::string> Inflate(std::string_view stored, uint64_t raw_bytes) {
  if (raw_bytes > kMostRaw) {
    return Broken(std::to_string(raw_bytes) + " bytes", "at most " + std::to_string(kMostRaw));
  }
  if (stored.size() > kMostRaw) return Broken("a stream that is larger than any content");
  z_stream stream = {};
  if (::inflateInit(&stream) != Z_OK) return ResourceExhausted({.what = "zlib: no memory"});
  // zlib's interface is older than const; it does not write its input.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(stored.data()));
  stream.avail_in = static_cast<uInt>(stored.size());
  std::string out;
  int rc = Z_OK;
  // Grows as content comes: a false claim of size costs nothing.
  while (rc == Z_OK && out.size() <= raw_bytes) {
    const size_t done = out.size();
    out.resize(std::min<uint64_t>(raw_bytes + 1, done + (1u << 16)));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + done);
    stream.avail_out = static_cast<uInt>(out.size() - done);
    rc = ::inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
    if (rc == Z_OK && out.size() == done) break;  // the input ended within the stream
  }
  const bool rest = stream.avail_in != 0;
  ::inflateEnd(&stream);
  if (out.size() > raw_bytes) {
    return Broken("more than " + std::to_string(raw_bytes) + " bytes of content");
  }
  if (rc != Z_STREAM_END) return Broken("a stream that is damaged or ends early");
  if (rest) return Broken("bytes after the end of the stream");
  if (out.size() != raw_bytes) {
    return Broken(std::to_string(out.size()) + " bytes", std::to_string(raw_bytes));
  }
  return out;
}

std::optional<std::string> ReadStoredBlob(const Store& store, const Evidence& evidence,
                                          const Doc& blob, Findings& findings) {
  const std::string digest = TextAt(blob, "sha256");
  const auto fail = [&](const char* code, const std::string& message) {
    findings.Add(code, evidence.file, 1, "/blobs", "blob " + TextAt(blob, "name") + " " + message);
    return std::nullopt;
  };
  if (!IsDigest(digest)) return fail("E-SAMPLES", "has no hash");
  const std::string path = evidence.file.substr(0, evidence.file.rfind('/') + 1) + digest + ".z";
  if (!CheckPath(store, path, evidence.file, 1, "/blobs", findings)) return std::nullopt;
  absl::StatusOr<std::string> bytes = ReadFile(store.PathOf(path), kMostRaw);
  if (!bytes.ok()) return fail("E-SAMPLES", "cannot be read: " + MessageOf(bytes.status()));
  if (bytes->starts_with(kLfsPointer)) return fail("E-ART-LFS", "is a Git LFS pointer");
  const int64_t size = static_cast<int64_t>(bytes->size());
  if (size != IntAt(blob, "bytes", -1)) {
    return fail("E-SAMPLES", "has " + std::to_string(size) + " bytes, wanted " +
                                 std::to_string(IntAt(blob, "bytes", -1)));
  }
  const std::string found = DigestOfText(*bytes);
  if (found != digest) return fail("E-ART-HASH", "has the hash " + found + ", wanted " + digest);
  return *std::move(bytes);
}

std::optional<std::string> ReadBlob(const Store& store, const Evidence& evidence,
                                    std::string_view name, Findings& findings) {
  const auto fail = [&](const std::string& message) {
    findings.Add("E-SAMPLES", evidence.file, 1, "/blobs", message);
    return std::nullopt;
  };
  const Doc* blob = FindBy(At(evidence.json, "blobs"), "name", name);
  if (blob == nullptr) return fail("no blob is named " + std::string(name));
  const std::optional<std::string> bytes = ReadStoredBlob(store, evidence, *blob, findings);
  if (!bytes) return std::nullopt;
  absl::StatusOr<std::string> out =
      Inflate(*bytes, static_cast<uint64_t>(IntAt(*blob, "raw_bytes", -1)));
  if (out.ok()) return *std::move(out);
  return fail("blob " + std::string(name) + ": " + MessageOf(out.status()));
}

}  // namespace h3rt::lab
