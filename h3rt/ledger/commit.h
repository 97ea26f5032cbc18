// How the log and the registry are written. Private to the laboratory's log.
#pragma once

#include <string>
#include <string_view>

#include "h3rt/base/file.h"
#include "h3rt/ledger/log.h"

namespace h3rt::lab {

// The first of the gravest errors, in words. There is one.
std::string GravestOf(const Findings& findings);

// The one writer's lock, for as long as the object lives. kAborted when another has it.
absl::StatusOr<FileLock> TakeWriterLock(const Store& store);
// The log as it is under the lock: sound and, unless `torn` is allowed, without a torn line.
absl::StatusOr<Log> LoadSoundLog(const Store& store, bool torn);
// What a reader would find in a line (without LF) that is put behind `log` now.
void CheckNextLine(const Log& log, std::string_view line, Findings& findings);

}  // namespace h3rt::lab
