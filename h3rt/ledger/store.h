// Where the laboratory's files lie, and how they are read.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "h3rt/base/status.h"
#include "h3rt/ledger/document.h"
#include "h3rt/ledger/finding.h"

namespace h3rt::lab {

inline constexpr char kRegistryFile[] = "research/experiment_registry.json";
inline constexpr char kPolicyFile[] = "research/policy.json";
inline constexpr char kLogFile[] = "research/vortex_exact_attention/EXPERIMENT_LOG.jsonl";
inline constexpr char kHeadFile[] = "research/vortex_exact_attention/HEAD";
inline constexpr char kLockFile[] = "research/vortex_exact_attention/LOCK";
inline constexpr char kLogPage[] = "research/vortex_exact_attention/EXPERIMENT_LOG.md";
inline constexpr char kRegistryPage[] = "research/EXPERIMENT_REGISTRY.md";
inline constexpr char kHtmlPage[] = "research/index.html";
inline constexpr char kManifestFile[] = "research/production_manifest.json";
inline constexpr char kEvidenceFolder[] = "benchmarks";
inline constexpr char kInventoryFile[] = "benchmarks/reference_inventory.json";
inline constexpr char kReadmeFile[] = "README.md";
// What the file of a Git LFS pointer begins with.
inline constexpr char kLfsPointer[] = "version https://git-lfs";

// The root of a checkout. Paths inside are relative, without "..".
struct Store {
  std::string root = ".";
  std::string PathOf(std::string_view relative) const;
};

// The whole text of a file of the store: E-IO, E-JSON-LIMIT or E-ART-LFS otherwise.
std::optional<std::string> ReadText(const Store& store, std::string_view relative,
                                    Findings& findings);

// [a-z0-9]+(-[a-z0-9]+)*, 3 to 80 characters.
bool IsId(std::string_view text);

// Why a path is not a plain relative one (absolute, "..", empty parts), empty when it is.
std::string WhyNotRelative(std::string_view path);
// A relative path that stays inside the root, also through links, and names no device or pipe;
// E-PATH otherwise (false). What is not there passes. Opens nothing.
bool CheckPath(const Store& store, std::string_view relative, std::string_view file, int64_t line,
               std::string_view pointer, Findings& findings);

struct Record {
  Doc json;
  int64_t line = 0;  // in the registry file
  std::string id() const { return TextAt(json, "id"); }
};

struct Registry {
  Doc header;
  std::vector<Record> records;  // sorted by id
  const Record* Find(std::string_view id) const;
};

// Reads the registry: E-IO when it is not there, E-JSON and the like, E-CANON, E-ORDER, E-DIGEST
// for a record whose own digest is wrong. Gives nothing when a line could not be read: it is not
// accepted in part.
std::optional<Registry> LoadRegistry(const Store& store, Findings& findings);
// The text of the file. Sets nothing: record digests must be right (see RefreshDigest).
std::string RegistryText(const Registry& registry);
// Puts a record's own digest into it.
void RefreshDigest(Doc& record);

std::optional<Doc> LoadPolicy(const Store& store, Findings& findings);

struct Evidence {
  std::string digest;  // of the bytes, which is the name it should have
  std::string file;    // relative
  Doc json;
};

// All evidence under benchmarks/, by digest. E-EV-NAME where name and content disagree, E-EV-SIZE
// for a tree over 8 MiB.
std::map<std::string, Evidence> LoadEvidence(const Store& store, Findings& findings);

// The stored bytes of a blob, checked against size and hash; ReadBlob inflates them.
std::optional<std::string> ReadStoredBlob(const Store& store, const Evidence& evidence,
                                          const Doc& blob, Findings& findings);

// A blob that `evidence` names, inflated and checked against its sizes and hash: E-SAMPLES
// (not there, of another size, no stream), E-ART-HASH or E-ART-LFS otherwise.
std::optional<std::string> ReadBlob(const Store& store, const Evidence& evidence,
                                    std::string_view name, Findings& findings);

// A new piece of evidence: blobs by name (raw bytes), compressed and written first, then the
// envelope, whose `blobs` are filled in here. A blob whose entry in the envelope already names the
// hash of the bytes given is stored as it is (streams differ between versions of zlib). Idempotent:
// files that are there already with the same bytes stay. kInvalidArgument for an envelope that
// could not be read back. Returns the digest.
struct NewEvidence {
  Doc envelope;
  std::map<std::string, std::string> blobs;
};
absl::StatusOr<std::string> WriteEvidence(const Store& store, const NewEvidence& evidence);
// "nvidia-h200", "host", ...: the folder of an environment class; "nvcc" for what was only
// assembled.
std::string DeviceFolder(const Doc& envelope);

// zlib, level 9; deterministic for one version of zlib only, so compare raw bytes, never streams.
std::string Deflate(std::string_view raw);
// kDataLoss unless the stream is whole and gives exactly `raw_bytes`.
absl::StatusOr<std::string> Inflate(std::string_view stored, uint64_t raw_bytes);

}  // namespace h3rt::lab
