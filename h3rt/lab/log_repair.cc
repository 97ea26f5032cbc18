// A torn last line: what a crash in the middle of an append leaves. Its bytes are kept.
#include <filesystem>

#include "h3rt/base/file.h"
#include "h3rt/lab/commit.h"

namespace h3rt::lab {
namespace {

constexpr char kQuarantine[] = "research/vortex_exact_attention/quarantine/";

absl::Status Keep(const Store& store, const std::string& file, std::string_view bytes) {
  const std::string path = store.PathOf(file);
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error) return ErrnoStatus(error.value(), "create the folder of", path);
  H3RT_RETURN_IF_ERROR(WriteFlushed(path + ".next", bytes));
  return RenameFlushed(path + ".next", path);
}

}  // namespace

absl::StatusOr<std::string> RepairLog(const Store& store, const std::string& now) {
  H3RT_ASSIGN_OR_RETURN(const WriterLock lock, WriterLock::Take(store));
  H3RT_RETURN_IF_ERROR(RecoverLocked(store).status());
  H3RT_ASSIGN_OR_RETURN(const Log log, LoadSoundLog(store, true));
  if (log.torn_bytes == 0) return std::string();
  const std::string path = store.PathOf(kLogFile);
  H3RT_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  const std::string torn = text.substr(static_cast<size_t>(log.bytes));
  const std::string file = kQuarantine + DigestOfText(torn);
  H3RT_RETURN_IF_ERROR(Keep(store, file, torn));
  text.resize(static_cast<size_t>(log.bytes));
  std::string said = std::to_string(torn.size()) + " bytes moved to " + file;
  Doc entry = EmptyEntry("quarantine", "Torn line moved to quarantine");
  if (!log.entries.empty()) {  // else there is no genesis for an entry to follow
    entry["actions"].push_back("Moved the bytes after the last line feed to " + file);
    entry["quarantine"] = {{"bytes", torn.size()}, {"file", file}, {"sha256", DigestOfText(torn)}};
    entry["registry"] = At(log.entries.back().json, "registry");
    H3RT_ASSIGN_OR_RETURN(const std::string line, EntryLine(entry, log, now));
    text += line;
  }
  // The line goes and the entry that names it comes with one rename.
  H3RT_RETURN_IF_ERROR(WriteFlushed(path + ".next", text));
  H3RT_RETURN_IF_ERROR(RenameFlushed(path + ".next", path));
  if (log.entries.empty()) return said;
  H3RT_RETURN_IF_ERROR(WriteHead(store, entry, static_cast<int64_t>(text.size())));
  return said;
}

}  // namespace h3rt::lab
