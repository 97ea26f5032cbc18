// The predicates that statuses rest on. For status_rules.cc and its test.
#pragma once

#include "h3rt/lab/gate.h"

namespace h3rt::lab {

// What holds of a record: the words of the specification. All evidence counts only while it is
// valid, made here and fresh.
struct Predicates {
  bool source = false;            // SRC: present and as recorded
  bool any = false;               // ANY: some evidence besides models, inspections and failures
  bool model = false;             // MODEL: a model or an inspection
  bool quality_fail = false;      // Qfail: correct is fail on some class
  bool correct = false;           // Pok: correct is pass on some class
  bool slow = false;              // Gfail: a timing gate is fail on some class
  bool correct_and_slow = false;  // both on one class
  bool blocked = false;           // BLK: a failure or a compiler that gave up, with its log
  bool retry = false;             // what would lift it is known
  bool architecture = false;      // ARCH: an inspection names rule or boundary, and the log decides
  bool all = false;               // ALL: the six gates are pass on one class
  bool eligible = false;          // scope.eligible is set
  bool selected = false;          // retention.dispatch is default: the manifest is made from it
  bool superseded = false;
  bool can_be_selected = true;    // a kind that production could run
  bool needs_non_claims = false;  // candidate or probe
  bool non_claims = false;
  // Words: the gate nearest to ALL that is no pass ("isolated on sm_90a is not run"), and why no
  // timing gate is a fail.
  std::string gates = {}, timing = {};
};
Predicates PredicatesOf(const Case& c);
// One view a status, in the order of kStatuses.
std::vector<StatusView> ViewsOf(const Predicates& p);

}  // namespace h3rt::lab
