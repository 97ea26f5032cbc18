// The whole check, part by part.
#include "h3rt/lab/validate.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "h3rt/base/file.h"
#include "h3rt/lab/gate.h"
#include "h3rt/lab/scan.h"
#include "h3rt/ledger/log.h"
#include "h3rt/ledger/schema.h"

namespace h3rt::lab {
namespace {

// Whether a document has its form.
bool CheckForm(const Doc& document, const Shape& shape, std::string_view file, Findings& findings,
               std::string pointer = {}) {
  FormCheck check{.file = file, .line = 1, .findings = findings};
  CheckShape(document, shape, pointer, check);
  return !check.bad;
}

class WholeCheck {
 public:
  WholeCheck(const Store& store, const ValidateOptions& options, Findings& findings)
      : store_(store), options_(options), findings_(findings) {}

  void Run() {
    std::optional<Doc> policy = LoadPolicy(store_, findings_);
    if (!policy) return;
    policy_ = *std::move(policy);
    const int64_t before = findings_.errors();
    ValidatePolicy(policy_, findings_);
    std::optional<Registry> registry = LoadRegistry(store_, findings_);
    if (!registry) return;
    registry_ = *std::move(registry);
    Header();
    for (const Record& record : registry_.records) {
      ValidateRecord(record.json, policy_, kRegistryFile, record.line, findings_);
    }
    if (options_.filesystem) evidence_ = LoadEvidence(store_, findings_);
    ValidateLinks(store_, registry_, policy_, options_.filesystem ? &evidence_ : nullptr,
                  options_.filesystem, findings_);
    std::optional<Log> log = LoadLog(store_, findings_, options_.now);
    if (!log) return;
    log_ = *std::move(log);
    for (const Record& record : registry_.records) LogSeqs(record);
    if (log_.fault.empty() && log_.torn_bytes == 0) Coverage();
    if (!options_.filesystem) return;
    for (const auto& [digest, evidence] : evidence_) {
      // What a rule says of a document that lacks its fields would only hide the cause.
      if (!CheckEvidenceForm(evidence, findings_)) continue;
      ValidateEvidence(store_, evidence, policy_, findings_);
      PlanOf(evidence);
      Replay(evidence);
    }
    freshness_ = FreshnessOfAll(store_, evidence_, policy_, options_.toolchain);
    Manifest();
    // What is said of statuses rests on documents that are as they should be.
    if (findings_.errors() == before) Statuses();
    Claims();
    if (findings_.errors() == before) WholeRegistry();
  }

  const Registry& registry() const { return registry_; }

 private:
  void Add(const char* code, const Record& record, std::string_view pointer, std::string message) {
    findings_.Add(code, kRegistryFile, record.line, pointer, std::move(message));
  }

  void Header() {
    CheckForm(registry_.header, HeaderShape(), kRegistryFile, findings_);
    policy_digest_ = DigestOf(policy_);
    const Doc& named = At(registry_.header, "policy_digest");
    if (!named.is_string() || named == policy_digest_) return;
    findings_.Add("E-POLICY", kRegistryFile, 1, "/policy_digest",
                  "the registry was written under another policy than " + policy_digest_);
  }

  const LogEntry* EntryAt(int64_t seq) const {
    return seq >= 1 && seq <= static_cast<int64_t>(log_.entries.size())
               ? &log_.entries[static_cast<size_t>(seq - 1)]
               : nullptr;
  }

  // Log entries that a record names must be there, and speak of it where they closed it.
  void LogSeqs(const Record& record) {
    if (!log_.fault.empty()) return;
    const auto check = [&](const std::string& pointer, const Doc& holder, const char* key) {
      const Doc& seq = At(holder, key);
      if (!seq.is_number_integer() || EntryAt(seq.get<int64_t>()) != nullptr) return;
      Add("E-LOG-COVER", record, pointer + "/" + key, "no log entry " + seq.dump());
    };
    check("/decision", At(record.json, "decision"), "log_seq");
    for (const Doc& cited : At(record.json, "evidence")) {
      check("/evidence", cited, "invalid_log_seq");
    }
    for (const Doc& skip : At(record.json, "skipped")) check("/skipped", skip, "log_seq");
    for (const char* gate : kGates) {
      for (const Doc& verdict : At(At(record.json, "gates"), gate)) {
        check(std::string("/gates/") + gate, verdict, "log_seq");
      }
    }
    const Doc& closed = At(record.json, "closed");
    if (!closed.is_object()) return;
    const LogEntry* entry = EntryAt(IntAt(closed, "log_seq"));
    const std::string kind = entry == nullptr ? "" : TextAt(entry->json, "kind");
    if ((kind != "close" && kind != "import") ||
        FindBy(At(entry->json, "records"), "id", record.id()) == nullptr) {
      Add("E-CLOSED", record, "/closed/log_seq",
          "log entry " + std::to_string(IntAt(closed, "log_seq")) + " does not close it");
    }
  }

  // The last entry that names a record carries its present digest, and the reverse.
  void Coverage() {
    std::unordered_map<std::string, std::pair<std::string, int64_t>> last;  // digest and line
    for (const LogEntry& entry : log_.entries) {
      for (const Doc& change : At(entry.json, "records")) {
        last[TextAt(change, "id")] = {TextAt(change, "after"), entry.line};
      }
    }
    for (const Record& record : registry_.records) {
      const std::string id = record.id();
      const auto it = last.find(id);
      const std::string digest = TextAt(record.json, "record_digest");
      if (it == last.end()) {
        Add("E-LOG-COVER", record, "/record_digest", "no log entry names " + id);
      } else if (it->second.first != digest) {
        Add("E-LOG-COVER", record, "/record_digest",
            id + " changed since log entry " + std::to_string(it->second.second) + ", which says " +
                it->second.first);
      }
    }
    const Doc& tombstones = At(registry_.header, "tombstones");
    for (const auto& [id, change] : last) {
      if (Holds(tombstones, id) || registry_.Find(id) != nullptr) continue;
      findings_.Add("E-LOG-COVER", kLogFile, change.second, "/records",
                    "the registry has no record " + id);
    }
  }

  // The header too: the last entry that names the registry's digest.
  void WholeRegistry() {
    for (auto entry = log_.entries.rbegin(); entry != log_.entries.rend(); ++entry) {
      const std::string wanted = TextAt(entry->json, "registry");
      if (wanted.empty()) continue;
      const std::string found =
          DigestOfText(ReadText(store_, kRegistryFile, findings_).value_or(""));
      if (found == wanted) return;
      findings_.Add("E-LOG-COVER", kRegistryFile, 1, "",
                    "it has the hash " + found + ", log entry " + std::to_string(entry->seq()) +
                        " says " + wanted);
      return;
    }
  }

  static const Doc& SamplesOf(const Doc& envelope) {
    static const Doc none;
    const Doc* const found =
        FindBy(At(envelope, "blobs"), "name", TextAt(At(envelope, "body"), "samples_blob", "-"));
    return found == nullptr ? none : *found;
  }

  // The samples of one run are one result, however often they are packed.
  void Replay(const Evidence& evidence) {
    const Doc& samples = SamplesOf(evidence.json);
    const auto [it, is_new] = sampled_.try_emplace(TextAt(samples, "sha256"), evidence.digest);
    if (samples.is_null() || is_new) return;
    findings_.Add("E-PROCESS", evidence.file, 1, "/blobs",
                  "the samples are those of " + it->second.substr(0, 12));
  }

  void PlanOf(const Evidence& evidence) {
    const Doc& plan = At(evidence.json, "plan");
    if (!plan.is_object() || !log_.fault.empty()) return;
    const LogEntry* entry = EntryAt(IntAt(plan, "log_seq"));
    if (entry == nullptr || TextAt(entry->json, "kind") != "plan" ||
        TextAt(entry->json, "hash") != TextAt(plan, "entry_hash")) {
      findings_.Add("E-EV-REF", evidence.file, 1, "/plan",
                    "no plan entry of the log has this seq and hash");
      return;
    }
    const std::string why =
        WhyNotPlanned(evidence.json, At(entry->json, "plan"), TextAt(entry->json, "ts"));
    if (!why.empty()) findings_.Add("E-EV-REF", evidence.file, 1, "/plan", why);
  }

  // Evidence of a record that no longer speaks of the sources as they are, with the dimension.
  std::string StaleReason(const Record& record) const {
    for (const char* gate : kGates) {
      for (const Doc& verdict : At(At(record.json, "gates"), gate)) {
        for (const Doc& digest : At(verdict, "evidence")) {
          const auto it = freshness_.find(digest.is_string() ? digest.get<std::string>() : "");
          if (it != freshness_.end() && it->second.stale) {
            return std::string(gate) + " rests on " + it->first.substr(0, 12) + ", " +
                   it->second.reason;
          }
        }
      }
    }
    return {};
  }

  void Manifest() {
    std::set<std::string> selected;
    if (ReadFile(store_.PathOf(kManifestFile)).ok()) {
      const std::optional<std::string> text = ReadText(store_, kManifestFile, findings_);
      std::optional<Doc> parsed = ParseDocument(text.value_or(""), kManifestFile, 1, findings_);
      if (!parsed) return;
      manifest_ = *std::move(parsed);
      CheckForm(manifest_, ManifestShape(), kManifestFile, findings_);
    }
    for (const Doc& entry : At(manifest_, "entries")) {
      const std::string id = TextAt(entry, "id");
      selected.insert(id);
      const Record* record = registry_.Find(id);
      if (record != nullptr && TextAt(record->json, "status") == "production_accepted") continue;
      findings_.Add("E-DISPATCH", kManifestFile, 1, "/entries",
                    id + " is selected and not production_accepted");
    }
    for (const Record& record : registry_.records) {
      const bool accepted = TextAt(record.json, "status") == "production_accepted";
      const bool is_default = TextAt(At(record.json, "retention"), "dispatch") == "default";
      if (is_default && !accepted) {
        Add("E-DISPATCH", record, "/retention/dispatch",
            record.id() + " is dispatched by default and not production_accepted");
      }
      // Stale evidence takes a record out of the manifest, and W-STALE says so.
      if (accepted && selected.count(record.id()) == 0 && StaleReason(record).empty()) {
        Add("E-DISPATCH", record, "/status", record.id() + " is accepted and not in the manifest");
      }
    }
  }

  void Statuses() {
    std::set<std::string> explained;  // the last entry that names it says why it stays incomplete
    for (const LogEntry& entry : log_.entries) {
      const std::string kind = TextAt(entry.json, "kind");
      const bool says =
          TextAt(entry.json, "status") == "incomplete" && (kind == "decision" || kind == "status");
      for (const Doc& change : At(entry.json, "records")) {
        explained.erase(TextAt(change, "id"));
        if (says) explained.insert(TextAt(change, "id"));
      }
    }
    for (const Record& record : registry_.records) {
      Verdicts(record);
      const std::string status = TextAt(record.json, "status");
      std::string strongest;
      const std::string missing_now = Missing(record, freshness_, &strongest);
      const std::string missing_then = missing_now.empty() ? "" : Missing(record, AsMade(record));
      if (!missing_then.empty()) {
        Add("E-STATUS-EVIDENCE", record, "/status", status + ": " + missing_then);
      }
      // A status stays when its evidence ages.
      const std::string stale = StaleReason(record);
      if (!stale.empty() || (missing_then.empty() && !missing_now.empty())) {
        Add(status == "production_accepted" ? "W-STALE" : "W-AGED", record, "/status",
            status +
                " rests on evidence of other sources: " + (stale.empty() ? missing_now : stale));
      } else if (status == "incomplete" && strongest != status &&
                 explained.count(record.id()) == 0) {
        Add("W-UNDERCLAIM", record, "/status", "the evidence permits " + strongest);
      }
    }
  }

  // What the status of a record lacks, and the strongest that it may have.
  std::string Missing(const Record& record, const std::map<std::string, Freshness>& freshness,
                      std::string* strongest = nullptr) const {
    std::string missing;
    for (const StatusView& view : PermittedStatuses(CaseOf(record, freshness))) {
      if (view.status == TextAt(record.json, "status")) missing = view.first_missing;
      if (view.strongest && strongest != nullptr) *strongest = view.status;
    }
    return missing;
  }

  // Freshness as it was when the evidence was made.
  static std::map<std::string, Freshness> AsMade(const Record& record) {
    std::map<std::string, Freshness> fresh;
    for (const Doc& cited : At(record.json, "evidence")) {
      fresh[TextAt(cited, "sha256")].stale = false;
    }
    return fresh;
  }

  // A stored verdict is what the policy says of the evidence, not what somebody wrote.
  void Verdicts(const Record& record) {
    const Doc& gates = At(record.json, "gates");
    if (std::all_of(gates.begin(), gates.end(), [](const Doc& list) { return list.is_null(); })) {
      return;
    }
    for (const char* gate : kGates) {
      for (const Doc& stored : At(gates, gate)) {
        const std::string here = std::string("/gates/") + gate;
        const std::string device_class = TextAt(stored, "class");
        if (TextAt(stored, "policy_digest") != policy_digest_) {
          Add("E-POLICY", record, here,
              "judged on " + device_class + " under another policy: run `h3rt lab gate " +
                  record.id() + "`");
          continue;
        }
        if (!Names(IntAt(stored, "log_seq"), record.id())) {
          Add("E-LOG-COVER", record, here, "the entry it cites does not name the record");
        }
        const std::map<std::string, Freshness> fresh = FreshnessFor(record, stored);
        const GateResult now = EvaluateGate(CaseOf(record, fresh), gate, device_class);
        const std::string told = TextAt(stored, "verdict");
        const std::string found = TextAt(now.verdict, "verdict", "not run");
        if (told != found) {
          Add("E-STATUS-EVIDENCE", record, here,
              "stored as " + told + " on " + device_class + ", the evidence says " + found);
          continue;
        }
        for (const char* field : {"evidence", "reason", "workloads"}) {
          if (At(stored, field) == At(now.verdict, field)) continue;
          Add("E-STATUS-EVIDENCE", record, here,
              std::string(field) + " on " + device_class + " is not what the evidence gives");
        }
      }
    }
  }

  // What a verdict cites counts as it was made: whether it carried it, not whether it still does.
  // What is current and not cited counts too, so that none can be left out.
  std::map<std::string, Freshness> FreshnessFor(const Record& record, const Doc& verdict) const {
    std::map<std::string, Freshness> fresh;
    const Doc& cited_now = At(verdict, "evidence");
    for (const Doc& cited : At(record.json, "evidence")) {
      const std::string digest = TextAt(cited, "sha256");
      const auto current = freshness_.find(digest);
      const bool named = std::find(cited_now.begin(), cited_now.end(), digest) != cited_now.end();
      // A rescue by machine code has a reason too; verdicts must not depend on who has a compiler.
      const bool as_it_was = current != freshness_.end() && current->second.reason.empty();
      fresh[digest].stale = !named && !as_it_was;
    }
    return fresh;
  }

  // Whether an entry of the log names a record.
  bool Names(int64_t seq, const std::string& id) const {
    const LogEntry* entry = EntryAt(seq);
    return !log_.fault.empty() ||
           (entry != nullptr && FindBy(At(entry->json, "records"), "id", id) != nullptr);
  }

  Case CaseOf(const Record& record, const std::map<std::string, Freshness>& freshness) const {
    return {.record = record.json,
            .evidence = evidence_,
            .freshness = freshness,
            .policy = policy_,
            .manifest = manifest_,
            .store = store_};
  }

  // Rows of the claims table that cite evidence.
  void Claims() {
    const std::string file = TextAt(At(policy_, "claims"), "file", kReadmeFile);
    const std::optional<std::string> text = ReadText(store_, file, findings_);
    std::string_view rest = text ? std::string_view(*text) : std::string_view();
    bool inside = false;
    std::string_view row;
    for (int64_t line = 1; TakeLine(rest, row); ++line) {
      if (row.starts_with('#')) inside = row.ends_with(" Claims");
      if (!inside || !row.starts_with('|')) continue;
      for (size_t at = 0; (at = row.find("ev:", at)) != std::string_view::npos;) {
        at += 3;
        const size_t stop = std::min(row.find_first_not_of("0123456789abcdef", at), row.size());
        const std::string reference(row.substr(at, stop - at));
        const std::string why = WhyNoClaim(reference);
        if (why.empty()) continue;
        findings_.Add({.code = "E-CLAIM",
                       .file = file,
                       .line = line,
                       .column = static_cast<int64_t>(at) + 1,
                       .message = "ev:" + reference + " " + why});
      }
    }
  }

  std::string WhyNoClaim(const std::string& reference) const {
    const Evidence* evidence = ResolveEvidence(evidence_, reference);
    if (evidence == nullptr) return "names no one piece of evidence (at least 8 hex digits)";
    const Record* record = registry_.Find(TextAt(evidence->json, "experiment"));
    bool valid = false;
    for (const Doc& cited : record == nullptr ? Doc() : At(record->json, "evidence")) {
      valid = valid || (TextAt(cited, "sha256") == evidence->digest && BoolAt(cited, "valid"));
    }
    if (!valid) return "is no valid evidence of a record";
    const Freshness& fresh = freshness_.at(evidence->digest);
    return fresh.stale ? "is stale, " + fresh.reason : "";
  }

  const Store& store_;
  const ValidateOptions& options_;
  std::map<std::string, std::string> sampled_;  // samples blob -> evidence
  Findings& findings_;
  Doc policy_;
  std::string policy_digest_;
  Doc manifest_;
  Registry registry_;
  Log log_;
  std::map<std::string, Evidence> evidence_;
  std::map<std::string, Freshness> freshness_;
};

}  // namespace

void Validate(const Store& store, const ValidateOptions& options, Findings& findings) {
  if (options.group.empty()) return WholeCheck(store, options, findings).Run();
  // Everything is checked, since records name each other; only what concerns the group is told.
  constexpr size_t kMost = 1'000'000;
  Findings every(kMost);
  WholeCheck check(store, options, every);
  check.Run();
  std::map<int64_t, std::string> groups;
  for (const Record& record : check.registry().records) {
    groups[record.line] = TextAt(record.json, "group");
  }
  for (Finding& finding : every.Sorted()) {
    const auto it = groups.find(finding.line);
    const bool own =
        finding.file == kRegistryFile && it != groups.end() && it->second == options.group;
    // Without records nothing could be checked, which concerns every group.
    if (own || groups.empty()) findings.Add(std::move(finding));
  }
}

bool CheckEvidenceForm(const Evidence& evidence, Findings& findings) {
  if (!CheckForm(evidence.json, EvidenceShape(), evidence.file, findings)) return false;
  const auto body = BodyShapes().find(TextAt(evidence.json, "kind"));
  return body != BodyShapes().end() &&
         CheckForm(At(evidence.json, "body"), body->second, evidence.file, findings, "/body");
}

std::map<std::string, Freshness> FreshnessOfAll(const Store& store,
                                                const std::map<std::string, Evidence>& evidence,
                                                const Doc& policy, const Toolchain& toolchain) {
  std::map<std::string, Freshness> out;
  std::map<std::string, const Freshness*> known;
  for (const auto& [digest, item] : evidence) {
    // All that freshness looks at; a run makes many pieces of evidence of one subject.
    Doc facts = item.json;
    for (const char* other : {"blobs", "environment", "experiment", "invocation", "plan"}) {
      facts.erase(other);
    }
    if (TextAt(facts, "kind") != "inspection") facts.erase("body");
    facts["workload"] = At(At(item.json, "workload"), "generator");
    const auto [it, is_new] = known.try_emplace(CanonicalText(facts), nullptr);
    // What the toolchain's build says costs nothing; compiling waits.
    const Toolchain here{.recompile = nullptr, .build_digest = toolchain.build_digest};
    const Freshness fresh = is_new ? FreshnessOf(store, item, policy, here) : *it->second;
    it->second = &out.emplace(digest, fresh).first->second;
  }
  if (!toolchain.recompile) return out;
  // A compiler is asked only about what nothing newer has replaced.
  const auto place = [](const Doc& envelope) {
    return TextAt(envelope, "experiment") + " " + TextAt(envelope, "kind") + " " +
           TextAt(envelope, "vid") + " " + TextAt(envelope, "target");
  };
  std::set<std::string> current;
  for (const auto& [digest, item] : evidence) {
    if (!out.at(digest).stale) current.insert(place(item.json));
  }
  for (const auto& [digest, item] : evidence) {
    if (!out.at(digest).stale || current.contains(place(item.json))) continue;
    out[digest] = FreshnessOf(store, item, policy, toolchain);
  }
  return out;
}

void ValidatePolicy(const Doc& policy, Findings& findings) {
  FormCheck check{.file = kPolicyFile, .line = 1, .findings = findings};
  std::string pointer;
  CheckShape(policy, PolicyShape(), pointer, check);
  if (check.bad) return;
  for (const char* name : {"groups", "required_ids"}) {
    std::set<std::string> seen;
    for (const Doc& item : At(policy, name)) {
      if (seen.insert(item.get<std::string>()).second) continue;
      check.Add("E-POLICY", std::string("/") + name, item.get<std::string>() + " is there twice");
    }
  }
  for (auto it = At(policy, "architectures").begin(); it != At(policy, "architectures").end();
       ++it) {
    const std::string digits = it.key().substr(0, it.key().find_last_of("0123456789") + 1);
    std::string capability = TextAt(*it, "capability");
    capability.erase(std::remove(capability.begin(), capability.end(), '.'), capability.end());
    if (digits == "sm_" + capability) continue;
    check.Add("E-POLICY", "/architectures/" + it.key(), "is not of capability " + capability);
  }
}

}  // namespace h3rt::lab
