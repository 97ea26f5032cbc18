// The tables, in a notation of their own:
//
//   {name: shape, ...}   an object with exactly these fields
//   [shape]  [shape]+    a list; with at least one item
//   <shape>              a map from any key
//   a|b|c                one of these words (one word alone too)
//   Text(n)              a text of 1 to n bytes; Text alone: 2,000
//   Int  Int(n)  Signed  an integer from 0, from n, of any sign
//   Bool Digest Id Commit Path Target Class Time Status Gate Verdict Any   see schema.h, gate.h
//   shape?               or null, which says something of its own
//   shape~               or null, which means unknown: it needs a missing[] entry
#include <algorithm>
#include <map>
#include <span>

#include "h3rt/base/check.h"
#include "h3rt/ledger/schema.h"

namespace h3rt::lab {
namespace {

constexpr char kHeader[] = R"({
  schema: lab.registry/1, project: h3rt, policy_digest: Digest, tombstones: [Id]})";

constexpr char kRecord[] = R"({
  id: Id, name: Text(120), group: Text(40),
  kind: candidate|reference|probe|baseline|profile|decision|import|method|backend,
  status: Status, imported_status: Status?,
  decision: {text: Text(280), log_seq: Int(1)?},
  boundary: Text~,
  scope: {workloads: [Text(80)], archs: [Target], eligible: Text(500)~, non_claims: [Text]},
  source: {state: present|partial|external|unrecoverable|not_started, paths: [Text(400)],
    digest: Digest~, entry: [Text(400)], commit: Commit~, patch: Digest~},
  variants: [{vid: Text(80), params: <Text(400)>, source_digest: Digest?, note: Text?}],
  baseline: {id: Id, vid: Text(80)?}~,
  gates: {build: [VERDICT]+?, correct: [VERDICT]+?, isolated: [VERDICT]+?, block: [VERDICT]+?,
    trajectory: [VERDICT]+?, deployment: [VERDICT]+?},
  evidence: [{sha256: Digest, role: result|screen|control|reference, vid: Text(80)?, valid: Bool,
    invalid_reason: Text?, invalid_log_seq: Int(1)?}],
  artifacts: [{path: Path, kind: Text(40), sha256: Digest~, bytes: Int~, exists: Bool}],
  missing: [{pointer: Text(200), what: Text, blocker: Bool, note: Text?,
    why: unknown_historical|not_recorded|not_run|not_enumerated|unrecoverable|out_of_hardware
      |not_applicable}],
  skipped: [{gate: Gate, because_gate: Gate?, because_evidence: Digest?, log_seq: Int(1)?}],
  retention: {purpose: [evidence|reference|reproducer|warning]+, callable: Bool,
    dispatch: none|opt_in_off|default},
  closed: {log_seq: Int(1), rule: Text, candidate_digest: Digest?, reuse_only_in: Text?,
    reopen: {mode: unchanged_forbidden|condition, conditions: [Text], auto: toolchain?}}?,
  relations: {supersedes: [Id], superseded_by: Id?, duplicate_of: Id?, shares_evidence_with: [Id],
    derived_from: [Id]},
  provenance: {origin: native|imported, from: {document: Text, line: Int(1), sha256: Digest}?},
  record_digest: Digest})";

constexpr char kVerdict[] = R"({
  class: Class, verdict: Verdict, reason: Text, evidence: [Digest], workloads: [Text(80)],
  policy_digest: Digest, log_seq: Int(1)})";

constexpr char kArm[] = R"(
  source_digest: Digest?, source_paths: [Path], build_digest: Digest?, binary_sha256: Digest?,
  kernels: [{symbol: Text, code_sha256: Digest?}])";

constexpr char kEvidence[] = R"({
  schema: lab.evidence/1,
  kind: compile|resource|parity|sanitizer|timing_single|timing_pair|profile|fixture|inspection
    |failure,
  origin: measured|compiled|inspected|modelled|imported,
  word: executed|assembled|emulated?, experiment: Id, vid: Text(80)?, target: Class,
  subject: {ARM, baseline: {ARM}?},
  workload: {id: Text(80), level: toy|aligned|ragged|canonical, dims: <Int>, dtypes: <Text(40)>,
    generator: Text(80)?, seed: Int?, input_sha256: <Digest>, calls: Int(1)}?,
  environment: {
    class: {device: Text?, capability: Text(20)?, driver: Text?, runtime: Text?, toolkit: Text?,
      ecc: Any?, mig: Any?, os: Text?, cpu: Text?},
    instance: {boot_id_sha256: Digest?, uuid_sha256: Digest?, clock_before_mhz: Int?,
      clock_after_mhz: Int?, power_limit_mw: Int?, temperature_before_c: Signed?,
      temperature_after_c: Signed?, throttle_before: Int?, throttle_after: Int?,
      other_memory_bytes: Int?, load_milli: Int?, cores: Int?, hypervisor: Any?}},
  invocation: {argv: [Text(4000)], start_us: Int?, end_us: Int?, exit_code: Signed?, signal: Int?,
    peak_rss_bytes: Int?, peak_device_bytes: Int?, variables: <Text(4000)>},
  harness: {version: Text(80), source_digest: Digest?, commit: Commit?, dirty_digest: Digest?,
    policy_digest: Digest?},
  plan: {log_seq: Int(1), entry_hash: Digest, gate: Gate, processes: Int(1), quads: Int(1),
    min_gain_ppm: Signed, min_abs_ns: Int}?,
  body: Any,
  blobs: [{name: Text(80), sha256: Digest, bytes: Int, raw_bytes: Int, encoding: zlib}]})";

// Kind of evidence -> its body.
constexpr std::pair<const char*, const char*> kBodies[] = {
    {"compile", R"({
  outcome: ok|rejected|ice|timeout|oom, expected: ok|rejected, diagnostics: [Text(4000)],
  flags: Text(4000), compiler: Text, ptxas: Text?, wall_ns: Int?,
  control: {target: Class, outcome: ok|rejected|ice|timeout|oom, expected: ok|rejected}?})"},
    {"resource", R"({
  compiler: Text, ptxas: Text?, flags: Text(4000),
  kernels: [{symbol: Text(4000), code_sha256: Digest?, code_bytes: Int?, registers: Int,
    stack_bytes: Int, spill_store_bytes: Int, spill_load_bytes: Int, static_shared_bytes: Int,
    constant_bytes: Int, barriers: Int, max_threads: Int?, ctas_per_sm: Int?, limiter: Text?}]})"},
    {"parity", R"({
  reference: Text, mode: bitwise|tolerance, bound_e9: Int?, expected: match|mismatch,
  cases: [{workload: Text(80), level: toy|aligned|ragged|canonical, seed: Int,
    checkpoint: Text(80)?, elements: Int, mismatches: Int, first_index: Int?,
    first_actual_bits: Text(40)?, first_expected_bits: Text(40)?, max_abs_e9: Int?,
    rel_l2_e9: Int?, max_ulp: Int?, nan_actual: Int, nan_expected: Int,
    unwritten: Int, guard_faults: Int, inputs_unchanged: Bool}],
  repeat_exact: {workload: Text(80), launches: Int, distinct_digests: Int}?})"},
    {"sanitizer", R"({
  tool: memcheck|racecheck|initcheck|synccheck, version: Text, errors: Int,
  hazards_displayed: Int?, hazards_total: Int?, kernels: [{symbol: Text(4000), launches: Int}],
  control: {planted: Any, found: Any}?, log: Text(80)?})"},
    {"timing_single", R"({
  arm: Text(80), samples_blob: Text(80), unit: ns, mode: single|batched|graph, batch: Int(1),
  timer: event|host, tick_ns: Int, warmups: Int, statistics: Any})"},
    {"timing_pair", R"({
  design: abba, baseline: Text(80), candidate: Text(80), processes: Int(1), quads: Int(1),
  mode: single|batched|graph, batch: Int(1), timer: event|host, tick_ns: Int, warmups: Int,
  calls: Int(1), bytes: Int?, operations: Int?, copy_bytes_per_s: Int?, peak_bytes_per_s: Int?,
  peak_ops_per_s: Int?, samples_blob: Text(80), process_ids: [Any], audits: Any,
  statistics: Any})"},
    {"profile", R"({
  tool: Text(80), version: Text, kernel: Text(4000), metrics: <{value_e3: Signed, unit: Text(40)}>,
  report: Text(80)?})"},
    {"fixture", R"({
  tensors: [{name: Text, dtype: Text(40), shape: [Int], sha256: Digest}], reload_ok: Bool,
  generator: Text?})"},
    {"inspection", R"({
  rule: Text?, boundary: Text?, document: Text(400), document_sha256: Digest?, reviewer: Text?})"},
    {"failure", R"({
  outcome: device_oom|host_oom|host_fault|driver|timeout|crash, message: Text(4000),
  peak_bytes: Int?, retry: Text?})"},
};

constexpr char kLogEntry[] = R"({
  schema: lab.log/1, seq: Int(1), prev: Digest, hash: Digest, ts: Time, title: Text,
  kind: genesis|plan|entry|decision|status|close|reopen|invalidate|supersede|import|correction
    |quarantine|anchor,
  author: Text?, hypothesis: Text(8000)?, decision: Text(8000)?, status: Status?,
  actions: [Text(8000)], alternatives: [Text(8000)], authorizes: [Text(8000)],
  forbids: [Text(8000)], not_done: [Text(8000)], evidence: [Digest],
  records: [{id: Id, before: Digest?, after: Digest}],
  projections: [{low: Signed, high: Signed, unit: Text(40)}],
  anchor: Any?, commit_parent: Commit?, document: Any?, plan: Any?, quarantine: Any?,
  registry: Digest?})";

constexpr char kTiming[] = R"(
  levels: [toy|aligned|ragged|canonical]+, min_gain_ppm: Signed, min_abs_ns: Int,
  min_processes: Int(2), max_discard_ppm: Int, max_discard_difference_ppm: Int, reason: Text)";

constexpr char kPolicy[] = R"({
  schema: lab.policy/1, version: Int(1), groups: [Text(40)]+, required_ids: [Id],
  environment_class: [device|capability|driver|runtime|toolkit|ecc|mig|os|cpu]+,
  architectures: <{capability: Text(20), products: Text, peak_bytes_per_s: Int(1),
    peak_ops_per_s: Int(1), registers_per_sm: Int(1), shared_per_sm_bytes: Int(1),
    shared_per_cta_reserved_bytes: Int, max_threads_per_sm: Int(1), max_ctas_per_sm: Int(1),
    reason: Text}>,
  gates: {
    build: {max_spill_bytes: Int, max_stack_bytes: Int, min_ctas_per_sm: Int(1), reason: Text},
    correct: {levels: [toy|aligned|ragged|canonical]+, repeat_launches: Int(2),
      sanitizers: [memcheck|racecheck|initcheck|synccheck]+,
      async_sanitizers: [memcheck|racecheck|initcheck|synccheck], reason: Text},
    isolated: {TIMING}, block: {TIMING}, trajectory: {TIMING},
    deployment: {min_processes: Int(2), max_soak_slope_bytes: Int, reason: Text}},
  claims: {file: Path, reason: Text}})";

constexpr char kManifest[] = R"({
  schema: lab.manifest/1,
  entries: [{id: Id, class: Class, eligible: Text(500)?, entry: [Text(400)], evidence: [Digest],
    source_digest: Digest?, workloads: [Text(80)]}]})";

// Reads the notation. A fault in it is ours.
class Reader {
 public:
  explicit Reader(std::string text) : text_(std::move(text)) {}

  Shape Whole() {
    Shape shape = Next();
    Space();
    H3RT_CHECK(at_ == text_.size());
    return shape;
  }

 private:
  void Space() {
    while (at_ < text_.size() && std::string_view(" \n,").find(text_[at_]) != std::string::npos) {
      ++at_;
    }
  }
  char Peek() {
    Space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool Take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string Word() {
    Space();
    const size_t begin = at_;
    at_ = std::min(text_.find_first_of(" \n,:|?~(){}[]<>", at_), text_.size());
    H3RT_CHECK(at_ > begin);
    return text_.substr(begin, at_ - begin);
  }

  Shape Next() {
    Shape shape;
    const char open = Peek();
    if (Take('{')) {
      shape.kind = Kind::kObject;
      while (Peek() != '}') {
        std::string name = Word();
        H3RT_CHECK(Take(':'));
        shape.fields.push_back({std::move(name), Next()});
      }
      std::sort(shape.fields.begin(), shape.fields.end(),
                [](const Field& a, const Field& b) { return a.name < b.name; });
    } else if (Take('[') || Take('<')) {
      shape.kind = open == '[' ? Kind::kList : Kind::kMap;
      shape.item.push_back(Next());
    } else {
      Base(shape);
    }
    if (shape.kind >= Kind::kObject) {
      H3RT_CHECK(Peek() == (open == '{' ? '}' : open == '[' ? ']' : '>'));
      ++at_;
      if (Take('+')) shape.low = 1;
    }
    if (Take('?')) shape.null = Null::kMeaning;
    if (Take('~')) shape.null = Null::kGap;
    return shape;
  }

  static Shape Of(Kind kind, int64_t low = 0, int64_t high = 0) {
    Shape shape;
    shape.kind = kind;
    shape.low = low;
    shape.high = high;
    return shape;
  }
  static Shape OneOf(std::span<const char* const> words, bool is_status = false) {
    Shape shape;
    shape.kind = Kind::kEnum;
    shape.words.assign(words.begin(), words.end());
    shape.is_status = is_status;
    return shape;
  }

  void Base(Shape& shape) {
    static const std::map<std::string, Shape, std::less<>> kNames = {
        {"Any", Of(Kind::kAny)},
        {"Bool", Of(Kind::kBool)},
        {"Int", Of(Kind::kInt, 0, kMost)},
        {"Signed", Of(Kind::kInt, -kMost, kMost)},
        {"Text", Of(Kind::kText, 1, 2000)},
        {"Digest", Of(Kind::kDigest)},
        {"Id", Of(Kind::kId)},
        {"Commit", Of(Kind::kCommit)},
        {"Path", Of(Kind::kPath)},
        {"Target", Of(Kind::kTarget)},
        {"Class", Of(Kind::kClass)},
        {"Time", Of(Kind::kTime)},
        {"Status", OneOf(kStatuses, true)},
        {"Gate", OneOf(kGates)},
        {"Verdict", OneOf(kVerdicts)},
    };
    std::string word = Word();
    if (const auto it = kNames.find(word); it != kNames.end()) {
      shape = it->second;
      if (!Take('(')) return;
      const int64_t number = std::stoll(Word());
      (shape.kind == Kind::kText ? shape.high : shape.low) = number;
      H3RT_CHECK(Take(')'));
      return;
    }
    shape.kind = Kind::kEnum;
    shape.words.push_back(std::move(word));
    while (Peek() == '|') {
      ++at_;
      shape.words.push_back(Word());
    }
  }

  static constexpr int64_t kMost = (int64_t{1} << 53) - 1;
  std::string text_;
  size_t at_ = 0;
};

// Puts a part in the places of its name.
Shape Read(std::string text, const char* name = "", std::string_view part = {}) {
  const size_t length = std::string_view(name).size();
  for (size_t at = 0; length > 0 && (at = text.find(name, at)) != std::string::npos;) {
    text.replace(at, length, part);
    at += part.size();
  }
  return Reader(std::move(text)).Whole();
}

// All are read at once, when the first is asked for.
struct Shapes {
  Shape header = Read(kHeader);
  Shape record = Read(kRecord, "VERDICT", kVerdict);
  Shape evidence = Read(kEvidence, "ARM", kArm);
  Shape log_entry = Read(kLogEntry);
  Shape policy = Read(kPolicy, "TIMING", kTiming);
  Shape manifest = Read(kManifest);
  std::map<std::string, Shape, std::less<>> bodies = {};

  Shapes() {
    for (const auto& [kind, text] : kBodies) bodies.emplace(kind, Read(text));
  }
};
const Shapes& All() {
  static const Shapes* const shapes = new Shapes();
  return *shapes;
}

}  // namespace

const Shape& HeaderShape() { return All().header; }
const Shape& RecordShape() { return All().record; }
const Shape& EvidenceShape() { return All().evidence; }
const std::map<std::string, Shape, std::less<>>& BodyShapes() { return All().bodies; }
const Shape& LogEntryShape() { return All().log_entry; }
const Shape& PolicyShape() { return All().policy; }
const Shape& ManifestShape() { return All().manifest; }

}  // namespace h3rt::lab
