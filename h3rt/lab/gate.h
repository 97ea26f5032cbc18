// Gates: policy over evidence. Statuses: what the verdicts permit.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "h3rt/lab/freshness.h"
#include "h3rt/ledger/schema.h"
#include "h3rt/ledger/store.h"

namespace h3rt::lab {

// Everything a judgement needs. References must outlive it.
struct Case {
  const Doc& record;
  const std::map<std::string, Evidence>& evidence;
  const std::map<std::string, Freshness>& freshness;  // by digest; absent counts as stale
  const Doc& policy;
  const Doc& manifest;  // the production manifest, or null
  const Store& store;   // for blobs
};

// What one gate says for one device class ("sm_90a"). A verdict as it is stored in the record, plus
// the arithmetic for people. Only valid, native, fresh, measured or compiled evidence of this
// record counts. Nothing that applies: verdict null (not run).
struct GateResult {
  Doc verdict;
  std::vector<std::string> arithmetic;
};
GateResult EvaluateGate(const Case& c, std::string_view gate, std::string_view device_class);
// The device classes that the record's scope names or its evidence covers, sorted.
std::vector<std::string> DeviceClasses(const Case& c);

// One status: permitted, or the first predicate that is missing, in words.
struct StatusView {
  std::string status;
  bool permitted = false;
  bool strongest = false;     // the strongest that is permitted, by precedence
  std::string first_missing;  // empty when permitted
};
std::vector<StatusView> PermittedStatuses(const Case& c);
// Empty when a record may go from one status to another, else why not.
std::string WhyNotTransition(std::string_view from, std::string_view to);

}  // namespace h3rt::lab
