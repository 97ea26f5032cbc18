// Blobs: zlib streams.
#include <zlib.h>

#include <algorithm>

#include "h3rt/base/check.h"
#include "h3rt/base/file.h"
#include "h3rt/lab/store.h"

namespace h3rt::lab {
namespace {

constexpr uint64_t kMostRaw = 256ull << 20;  // a stream that claims more is not ours

absl::Status Broken(std::string got, std::string wanted = {}) {
  return DataLoss({.what = "compressed blob",
                   .got = std::move(got),
                   .wanted = std::move(wanted),
                   .where = "zlib"});
}

std::string FolderOf(const Evidence& evidence) {
  return evidence.file.substr(0, evidence.file.rfind('/') + 1);
}

}  // namespace

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
  const auto fail = [&](const char* code, std::string message) {
    findings.Add({.code = code,
                  .file = evidence.file,
                  .line = 1,
                  .pointer = "/blobs",
                  .message = "blob " + TextAt(blob, "name") + " " + std::move(message)});
    return std::nullopt;
  };
  if (!IsDigest(digest)) return fail("E-SAMPLES", "has no hash");
  const std::string path = FolderOf(evidence) + digest + ".z";
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
  for (const Doc& blob : At(evidence.json, "blobs")) {
    if (TextAt(blob, "name") != name) continue;
    const std::optional<std::string> bytes = ReadStoredBlob(store, evidence, blob, findings);
    if (!bytes) return std::nullopt;
    const int64_t raw = IntAt(blob, "raw_bytes", -1);
    absl::StatusOr<std::string> out = Inflate(*bytes, static_cast<uint64_t>(raw));
    if (out.ok()) return *std::move(out);
    findings.Add({.code = "E-SAMPLES",
                  .file = evidence.file,
                  .line = 1,
                  .pointer = "/blobs",
                  .message = "blob " + std::string(name) + ": " + MessageOf(out.status())});
    return std::nullopt;
  }
  findings.Add({.code = "E-SAMPLES",
                .file = evidence.file,
                .line = 1,
                .pointer = "/blobs",
                .message = "no blob is named " + std::string(name)});
  return std::nullopt;
}

}  // namespace h3rt::lab
