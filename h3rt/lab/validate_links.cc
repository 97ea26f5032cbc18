// Records among each other, and what they name outside: artifacts and evidence.
#include <sys/stat.h>

#include <algorithm>
#include <unordered_map>

#include "h3rt/base/file.h"
#include "h3rt/base/hash.h"
#include "h3rt/lab/experiments.h"
#include "h3rt/lab/gate.h"
#include "h3rt/lab/validate.h"
#include "h3rt/ledger/schema.h"

namespace h3rt::lab {
namespace {

constexpr const char* kRelations[] = {"supersedes", "shares_evidence_with", "derived_from",
                                      "superseded_by", "duplicate_of"};

class LinkCheck {
 public:
  LinkCheck(const Store& store, const Registry& registry, const Doc& policy,
            const std::map<std::string, Evidence>* evidence, Findings& findings)
      : store_(store),
        registry_(registry),
        policy_(policy),
        evidence_(evidence),
        findings_(findings) {}

  void Run(bool filesystem) {
    Ids();
    Required();
    for (const Record& record : registry_.records) {
      Relations(record);
      if (filesystem) Artifacts(record);
      if (evidence_ != nullptr) CitedEvidence(record);
    }
    Cycles();
    if (evidence_ == nullptr) return;
    Shared();
    for (const auto& [digest, item] : *evidence_) Owner(item);
  }

 private:
  void Add(const char* code, const Record& record, std::string_view pointer, std::string message) {
    findings_.Add(code, kRegistryFile, record.line, pointer, std::move(message));
  }

  void Ids() {
    const Doc& tombstones = At(registry_.header, "tombstones");
    std::unordered_map<std::string, const Record*> near;
    for (const Record& record : registry_.records) {
      const std::string id = record.id();
      const auto [it, is_new] = index_.emplace(id, &record);
      if (!is_new) {
        Add("E-ID-DUP", record, "/id",
            id + " is at line " + std::to_string(it->second->line) + " too");
        continue;
      }
      if (Holds(tombstones, id)) Add("E-ID-REUSE", record, "/id", id + " is a retired id");
      std::string plain;
      for (const char c : id) {
        if (c != '-') plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      }
      const auto [other, alone] = near.emplace(plain, &record);
      if (alone) continue;
      Add("W-ID-NEAR", record, "/id",
          id + " differs from " + other->second->id() + " by case or hyphens only");
    }
  }

  void Required() {
    for (const Doc& id : At(policy_, "required_ids")) {
      if (!id.is_string() || Find(id.get<std::string>()) != nullptr) continue;
      findings_.Add({.code = "E-REQ-MISSING",
                     .file = kRegistryFile,
                     .message = "no record " + id.get<std::string>() + ", which the policy wants"});
    }
  }

  const Record* Find(const std::string& id) const {
    const auto it = index_.find(id);
    return it == index_.end() ? nullptr : it->second;
  }

  struct Target {
    std::string relation, pointer, id;
  };
  // Every relation of a record; one that is a single id is a list of one.
  static std::vector<Target> TargetsOf(const Record& record) {
    const Doc& relations = At(record.json, "relations");
    std::vector<Target> out;
    for (const char* name : kRelations) {
      const Doc& ids = At(relations, name);
      const std::string here = std::string("/relations/") + name;
      if (ids.is_string()) out.push_back({name, here, ids});
      for (size_t i = 0; ids.is_array() && i < ids.size(); ++i) {
        if (ids[i].is_string()) out.push_back({name, here + "/" + std::to_string(i), ids[i]});
      }
    }
    return out;
  }

  void Relations(const Record& record) {
    const std::string id = record.id();
    for (const auto& [relation, pointer, target] : TargetsOf(record)) {
      const Record* other = Find(target);
      if (target == id) {
        Add("E-REL-SELF", record, pointer, id + " names itself");
      } else if (other == nullptr) {
        Add("E-REL-DANGLING", record, pointer, "no record " + target);
      } else {
        const Doc& back = At(other->json, "relations");
        const bool forward = relation == "supersedes";
        if ((forward && TextAt(back, "superseded_by") != id) ||
            (relation == "superseded_by" && !Holds(At(back, "supersedes"), id))) {
          Add("E-REL-ONESIDED", record, pointer,
              target + (forward ? " does not say superseded_by " : " does not supersede ") + id);
        }
      }
    }
    const Doc& baseline = At(record.json, "baseline");
    if (!baseline.is_object()) return;
    const std::string base = TextAt(baseline, "id");
    const std::string vid = TextAt(baseline, "vid");
    const Record* other = Find(base);
    if (other == nullptr || !HasVariant(*other, vid)) {
      Add("E-REL-DANGLING", record, "/baseline",
          "no record " + base + (vid.empty() ? "" : " with a variant " + vid));
    }
  }

  // The record itself counts as the variant without a name.
  static bool HasVariant(const Record& record, const std::string& vid) {
    return vid.empty() || FindBy(At(record.json, "variants"), "vid", vid) != nullptr;
  }

  // What a record is made from or stands for; a walk along it must end.
  std::vector<std::string> Forward(const Record& record) const {
    std::vector<std::string> out;
    for (const Target& target : TargetsOf(record)) {
      const bool walked =
          target.relation != "shares_evidence_with" && target.relation != "superseded_by";
      if (walked && target.id != record.id() && Find(target.id) != nullptr) {
        out.push_back(target.id);
      }
    }
    return out;
  }

  // Depth first without recursion; each circle is told once.
  void Cycles() {
    std::unordered_map<std::string, int> state;  // 1: on the way, 2: done
    for (const Record& start : registry_.records) {
      if (state[start.id()] != 0) continue;
      std::vector<std::pair<std::string, std::vector<std::string>>> way;
      way.emplace_back(start.id(), Forward(start));
      state[start.id()] = 1;
      while (!way.empty()) {
        if (way.back().second.empty()) {
          state[way.back().first] = 2;
          way.pop_back();
          continue;
        }
        const std::string next = way.back().second.back();
        way.back().second.pop_back();
        if (state[next] == 0) {
          state[next] = 1;
          way.emplace_back(next, Forward(*Find(next)));
        } else if (state[next] == 1) {
          std::string circle = next;
          auto it = std::find_if(way.begin(), way.end(),
                                 [&](const auto& step) { return step.first == next; });
          while (++it != way.end()) circle += " -> " + it->first;
          Add("E-REL-CYCLE", *Find(next), "/relations", circle + " -> " + next);
        }
      }
    }
  }

  // What the disk says of a path; hashed once however often it is named.
  struct OnDisk {
    bool there = false;
    bool lfs = false;
    int64_t bytes = -1;  // -1: a folder or unreadable
    std::string sha256;
  };
  const OnDisk& Look(const std::string& path, bool hash) {
    const auto [it, is_new] = disk_.try_emplace(path);
    OnDisk& out = it->second;
    struct stat info = {};
    if (is_new && ::stat(store_.PathOf(path).c_str(), &info) == 0) {
      out.there = true;
      if (S_ISREG(info.st_mode)) out.bytes = static_cast<int64_t>(info.st_size);
    }
    if (hash && out.bytes >= 0 && out.sha256.empty()) {
      // A limit on the size makes it cheap: pointers are small, other files are not read for this.
      constexpr uint64_t kMostPointer = 1024;
      out.lfs = ReadFile(store_.PathOf(path), kMostPointer).value_or("").starts_with(kLfsPointer);
      out.sha256 = Sha256OfFile(store_.PathOf(path)).value_or("unreadable");
    }
    return out;
  }

  void Artifacts(const Record& record) {
    size_t index = 0;
    for (const Doc& artifact : At(record.json, "artifacts")) {
      Artifact(record, artifact, "/artifacts/" + std::to_string(index++));
    }
    const Doc& source = At(record.json, "source");
    const std::string state = TextAt(source, "state");
    if (state != "present" && state != "partial") return;
    index = 0;
    for (const Doc& path : At(source, "paths")) {
      const std::string here = "/source/paths/" + std::to_string(index++);
      const std::string text = path.is_string() ? path.get<std::string>() : "";
      if (!WhyNotRelative(text).empty() ||
          !CheckPath(store_, text, kRegistryFile, record.line, here, findings_)) {
        continue;
      }
      if (!Look(text, false).there) {
        Add("E-ART-MISSING", record, here, text + " is not there, and source is " + state);
      }
    }
  }

  void Artifact(const Record& record, const Doc& artifact, const std::string& here) {
    const std::string path = TextAt(artifact, "path");
    if (!WhyNotRelative(path).empty()) return;  // the record's form says so
    if (!CheckPath(store_, path, kRegistryFile, record.line, here + "/path", findings_)) return;
    const bool exists = BoolAt(artifact, "exists");
    const std::string wanted = TextAt(artifact, "sha256");
    const OnDisk& disk = Look(path, exists);
    if (exists != disk.there) {
      return Add(exists ? "E-ART-MISSING" : "E-ART-FLAG", record, here + "/exists",
                 path + (exists ? " is not there" : " is there"));
    }
    if (!exists) return;
    if (disk.lfs) return Add("E-ART-LFS", record, here, path + " is a Git LFS pointer");
    const int64_t bytes = IntAt(artifact, "bytes", -1);
    if (bytes >= 0 && bytes != disk.bytes) {
      return Add(
          "E-ART-HASH", record, here + "/bytes",
          path + " has " + std::to_string(disk.bytes) + " bytes, wanted " + std::to_string(bytes));
    }
    if (!wanted.empty() && wanted != disk.sha256) {
      Add("E-ART-HASH", record, here + "/sha256",
          path + " has the hash " + disk.sha256 + ", wanted " + wanted);
    }
  }

  void CitedEvidence(const Record& record) {
    size_t index = 0;
    for (const Doc& cited : At(record.json, "evidence")) {
      const std::string here = "/evidence/" + std::to_string(index++);
      const std::string digest = TextAt(cited, "sha256");
      const auto it = evidence_->find(digest);
      if (it == evidence_->end()) {
        Add("E-EV-REF", record, here, "no evidence " + digest);
        continue;
      }
      if (TextAt(cited, "role") == "result") results_[digest].push_back(&record);
      const std::string owner = TextAt(it->second.json, "experiment");
      const Record* other = Find(owner);
      // A reference may be anybody's, and what two call their own result is told below.
      const bool allowed = owner == record.id() || TextAt(cited, "role") == "reference" ||
                           Shares(record, owner) || (other != nullptr && Cites(*other, digest));
      const std::string vid = TextAt(cited, "vid");
      if (!allowed && other != nullptr) {
        Add("E-EV-REF", record, here, digest + " is evidence of " + owner);
      } else if (!vid.empty() && vid != TextAt(it->second.json, "vid")) {
        Add("E-EV-REF", record, here + "/vid",
            digest + " is of the variant " + TextAt(it->second.json, "vid"));
      }
      // Gates speak of the candidate alone, so roles cannot be dealt out after the results are in.
      const Experiment* const experiment = FindExperiment(owner);
      const bool candidate = experiment == nullptr || experiment->arms.size() < 2 || vid.empty() ||
                             vid == experiment->arms[1].vid;
      if (!candidate && TextAt(cited, "role") == "result") {
        Add("E-EV-REF", record, here + "/role",
            vid + " is not the candidate: it may only screen or be a control");
      }
    }
    Verdicts(record);
    for (const std::string& reference : References(TextAt(At(record.json, "decision"), "text"))) {
      const size_t slash = std::min(reference.find('/'), reference.size());
      const Evidence* found = ResolveEvidence(*evidence_, reference.substr(0, slash));
      if (found != nullptr && AtPointer(found->json, reference.substr(slash)) != nullptr) continue;
      Add("E-EV-REF", record, "/decision/text", "{ev:" + reference + "} names nothing");
    }
  }

  static bool Cites(const Record& record, std::string_view digest) {
    return FindBy(At(record.json, "evidence"), "sha256", digest) != nullptr;
  }

  void Verdicts(const Record& record) {
    for (const char* gate : kGates) {
      const std::string here = std::string("/gates/") + gate;
      for (const Doc& verdict : At(At(record.json, "gates"), gate)) {
        for (const Doc& digest : At(verdict, "evidence")) {
          const std::string text = digest.is_string() ? digest.get<std::string>() : "";
          if (!Cites(record, text)) {
            Add("E-EV-REF", record, here, text + " is not in the record's evidence");
          }
          const auto it = evidence_->find(text);
          if (it == evidence_->end()) continue;
          const std::string origin = TextAt(it->second.json, "origin");
          if (origin != "measured" && origin != "compiled") {
            Add("E-ORIGIN", record, here, text + " is " + origin + ", which no gate counts");
          }
        }
      }
    }
  }

  // Whether a record says that evidence of another is its own too.
  static bool Shares(const Record& record, const std::string& other) {
    const Doc& relations = At(record.json, "relations");
    return TextAt(relations, "duplicate_of") == other ||
           Holds(At(relations, "shares_evidence_with"), other);
  }

  void Shared() {
    for (const auto& [digest, records] : results_) {
      const Record& first = *records[0];
      for (const Record* record : records) {
        if (record == &first || Shares(*record, first.id()) || Shares(first, record->id()))
          continue;
        Add("W-SHARED-EVIDENCE", *record, "/evidence",
            digest + " is the result of " + first.id() + " too");
      }
    }
  }

  void Owner(const Evidence& item) {
    const std::string id = TextAt(item.json, "experiment");
    const std::string vid = TextAt(item.json, "vid");
    const Record* record = Find(id);
    const auto add = [&](const char* pointer, std::string message) {
      findings_.Add("E-EV-REF", item.file, 1, pointer, std::move(message));
    };
    if (record == nullptr) {
      add("/experiment", "no record " + id);
    } else if (!HasVariant(*record, vid)) {
      add("/vid", id + " has no variant " + vid);
    } else {
      const Doc& scope = At(record->json, "scope");
      const Doc& workload = At(item.json, "workload");
      if (TextAt(workload, "level") != "canonical") return;
      const std::string name = TextAt(workload, "id");
      if (!At(scope, "workloads").empty() && !Holds(At(scope, "workloads"), name)) {
        return add("/workload/id", id + " has no workload " + name + " in its scope");
      }
      // What is measured for production is what production may select.
      const std::string eligible = TextAt(scope, "eligible");
      bool holds = true;
      const std::string why =
          eligible.empty() ? "" : EvaluatePredicate(eligible, &At(workload, "dims"), holds);
      if (why.empty() && holds) return;
      add("/workload/dims", id + " is eligible where " + eligible + ", and this is not" +
                                (why.empty() ? "" : ": " + why));
    }
  }

  const Store& store_;
  const Registry& registry_;
  const Doc& policy_;
  const std::map<std::string, Evidence>* evidence_;
  Findings& findings_;
  std::unordered_map<std::string, const Record*> index_;
  std::unordered_map<std::string, OnDisk> disk_;
  std::map<std::string, std::vector<const Record*>> results_;
};

}  // namespace

void ValidateLinks(const Store& store, const Registry& registry, const Doc& policy,
                   const std::map<std::string, Evidence>* evidence, bool filesystem,
                   Findings& findings) {
  LinkCheck(store, registry, policy, evidence, findings).Run(filesystem);
}

const Evidence* ResolveEvidence(const std::map<std::string, Evidence>& evidence,
                                std::string_view reference) {
  if (reference.size() < 8) return nullptr;
  const auto it = evidence.lower_bound(std::string(reference));
  if (it == evidence.end() || !it->first.starts_with(reference)) return nullptr;
  const auto next = std::next(it);
  const bool alone = next == evidence.end() || !next->first.starts_with(reference);
  return alone ? &it->second : nullptr;
}

}  // namespace h3rt::lab
