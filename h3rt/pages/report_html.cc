// research/index.html: one file, readable without scripts.
#include <fmt/format.h>

#include <algorithm>

#include "h3rt/base/check.h"
#include "h3rt/base/version.h"
#include "h3rt/pages/report_view.h"
#include "h3rt/pages/svg.h"

namespace h3rt::lab {
namespace {

constexpr char kStyle[] = R"css(
:root{color-scheme:light dark;--bg:#f7f6f3;--panel:#fff;--ink:#1b232e;--soft:#566070;
--line:#dedbd4;--track:#eceae5;--accent:#1c5d86;--base:#4d6785;--cand:#b8500f;--good:#23765a;
--bad:#b02f29;--warn:#8a6200;--violet:#6f479b;--blue:#2a67a8;--mute:#7b838f;--band:#1c5d8626}
@media(prefers-color-scheme:dark){:root{--bg:#12161b;--panel:#1a2027;--ink:#e4e8ed;--soft:#a2adba;
--line:#303843;--track:#262d36;--accent:#7cb9e8;--base:#93aecb;--cand:#f0965a;--good:#5fc09a;
--bad:#f0857d;--warn:#d9b14a;--violet:#b996e6;--blue:#7ab0ec;--mute:#8f99a6;--band:#7cb9e833}}*{
box-sizing:border-box}html{scroll-behavior:smooth}body{margin:0;background:var(--bg);
color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",
"DejaVu Sans",sans-serif;font-variant-numeric:tabular-nums}a{color:var(--accent);
text-underline-offset:2px}a:focus-visible,summary:focus-visible,button:focus-visible,
.box:focus-visible{outline:2px solid var(--accent);outline-offset:2px}code,.mono{
font:.88em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}code{
background:var(--track);padding:.1em .3em;border-radius:4px;overflow-wrap:anywhere}.wrap{
max-width:1280px;margin:0 auto;padding:0 20px}.skip{position:absolute;left:-999px}.skip:focus{
left:12px;top:12px;background:var(--panel);padding:8px}header.wrap{padding-top:44px}.kicker{
margin:0;color:var(--soft);font-size:.85rem;letter-spacing:.08em;text-transform:uppercase}h1{
margin:.1em 0 .25em;font-size:clamp(1.9rem,5vw,2.7rem);line-height:1.15;letter-spacing:-.02em}h2{
margin:0 0 .2em;font-size:1.35rem;letter-spacing:-.01em}h3{margin:1.1em 0 .5em;font-size:.95rem;
overflow-wrap:anywhere}.lead{max-width:46em;margin:0 0 24px;color:var(--soft);font-size:1.08rem}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:0;
padding:0;list-style:none}.tiles li{background:var(--panel);border:1px solid var(--line);
border-radius:10px;padding:12px 16px}.tiles b{display:block;font-size:1.7rem;line-height:1.2;
font-weight:650}.tiles span{color:var(--soft);font-size:.88rem}nav{position:sticky;top:0;z-index:3;
background:var(--bg);border-bottom:1px solid var(--line);margin-top:24px}nav ul{display:flex;
gap:4px 20px;margin:0;padding:10px 0;list-style:none;overflow-x:auto;white-space:nowrap}nav a{
text-decoration:none;font-size:.93rem}nav a:hover{text-decoration:underline}section{
scroll-margin-top:56px;background:var(--panel);border:1px solid var(--line);border-radius:12px;
padding:24px}.about{margin:0 0 16px;color:var(--soft);max-width:62em}main.wrap{display:grid;
margin-top:24px;margin-bottom:48px;grid-template-columns:1fr 1fr;gap:24px}section{grid-column:1/-1;
min-width:0}@media(min-width:900px){#status,#gates{grid-column:auto}}.panels{display:grid;
grid-template-columns:repeat(auto-fit,minmax(min(100%,290px),1fr));gap:8px 36px}.empty{
border:1px dashed var(--line);border-radius:8px;padding:14px 16px;color:var(--soft);margin:0}.plot{
display:block;overflow:visible}.at{overflow:visible}.plot text{fill:var(--ink);font-size:12.5px;
paint-order:stroke;stroke:var(--panel);stroke-width:4px;stroke-linejoin:round}.plot .label{
font-weight:600;font-size:13px}.plot .soft{fill:var(--soft)}.track{fill:var(--track)}.outline{
fill:none;stroke:var(--mute);stroke-width:1}.grid{stroke:var(--line);stroke-width:1}.zero{
stroke:var(--mute);stroke-width:1}.threshold{stroke:var(--warn);stroke-width:2;
stroke-dasharray:4 3}.band{fill:var(--band)}.interval{stroke-width:2}.interval.current{
stroke:var(--accent)}.interval.stale{stroke:var(--accent);stroke-dasharray:5 3}.interval.imported{
stroke:var(--mute)}.mark{stroke-width:2;stroke:var(--accent);fill:var(--panel)}.mark.current{
fill:var(--accent)}.mark.imported{stroke:var(--mute);fill:var(--mute)}.bridge{stroke:var(--mute);
stroke-width:2}.mark.hopper{fill:var(--base);stroke:var(--base)}.mark.spark{stroke:var(--cand)}
.run{fill:none;vector-effect:non-scaling-stroke}.run.baseline{stroke:var(--base);stroke-width:3.2;
stroke-linecap:round}.run.candidate{stroke:var(--cand);stroke-width:1.5}.run.control{
stroke:var(--mute);stroke-width:1.5;opacity:.7}.run.out{stroke:var(--bad);stroke-width:2}.median{
stroke-width:1.5}.median.baseline{stroke:var(--base)}.median.candidate{stroke:var(--cand)}
.plot .t-baseline{fill:var(--base);font-weight:600}.plot .t-candidate{fill:var(--cand);
font-weight:600}.k-close{fill:var(--ink);stroke:var(--ink)}.k-invalidate,.k-correction,
.k-quarantine{stroke:var(--bad)}.k-import{stroke:var(--mute)}.k-plan{stroke:var(--violet)}
.k-decision{fill:var(--accent)}.s-production_accepted,.v-pass{fill:var(--good);color:var(--good)}
.s-research_retained{fill:var(--blue);color:var(--blue)}.s-architecture_rejected{
fill:var(--violet);color:var(--violet)}.s-performance_rejected{fill:var(--cand);color:var(--cand)}
.s-quality_rejected,.v-fail{fill:var(--bad);color:var(--bad)}.s-temporarily_blocked,
.v-inconclusive{fill:var(--warn);color:var(--warn)}.s-incomplete,.v-skipped,.v-not_applicable{
fill:var(--mute);color:var(--mute)}rect.hollow{fill-opacity:.25;stroke:currentColor;
stroke-dasharray:3 2}.legend{display:flex;flex-wrap:wrap;gap:4px 20px;margin:0 0 14px;padding:0;
list-style:none;font-size:.88rem;color:var(--soft)}.legend svg{vertical-align:-3px;
margin-right:6px;overflow:visible}details{margin-top:14px}summary{cursor:pointer;
color:var(--accent);font-size:.93rem}.box{overflow-x:auto;margin-top:10px;
border:1px solid var(--line);border-radius:8px}table{border-collapse:collapse;width:100%;
font-size:.88rem;line-height:1.45}caption{text-align:left;padding:10px 12px;color:var(--soft)}th,
td{text-align:left;vertical-align:top;padding:8px 12px;border-top:1px solid var(--line)}thead th{
border-top:0;background:var(--track);white-space:nowrap;font-weight:600}tbody th{font-weight:600}
.n{text-align:right;white-space:nowrap}#records{min-width:1020px}#records td:nth-child(3){
min-width:14em}#records th[scope=row]{min-width:12em;max-width:15em}#records small,.under{
display:block;color:var(--soft);font-size:.92em;font-weight:400}.status{white-space:nowrap}
ul.plain{margin:0;padding:0;list-style:none}ul.plain li+li{margin-top:3px}.gate{display:block;
white-space:nowrap}#controls{display:flex;flex-wrap:wrap;gap:10px 16px;align-items:end;
margin:0 0 12px}#controls label{font-size:.88rem;color:var(--soft)}#controls input,
#controls select{display:block;font:inherit;color:var(--ink);background:var(--bg);
border:1px solid var(--mute);border-radius:6px;padding:6px 10px;max-width:100%}thead button{
all:unset;cursor:pointer;font-weight:600}thead button::after{content:" ↕";color:var(--mute)}dl{
display:grid;grid-template-columns:max-content 1fr;gap:6px 18px;margin:0}dt{color:var(--soft)}dd{
margin:0;overflow-wrap:anywhere}@media(max-width:600px){.wrap{padding:0 14px}section{
padding:18px 14px}dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:8px}header.wrap{
padding-top:26px}}@media print{:root{--bg:#fff;--panel:#fff;--ink:#000;--soft:#333}nav,#controls,
.skip{display:none}section{break-inside:auto;border:0;padding:0}.box{overflow:visible;border:0}
details::details-content{content-visibility:visible;height:auto}#records{min-width:0;font-size:7pt}
figure,svg,tr{break-inside:avoid}}
)css";

// Filter and sort of the records. Without it the table is whole and in the order of the ids.
constexpr char kScript[] = R"js(
(()=>{const t=document.getElementById('records'),b=t.tBodies[0],rows=[...b.rows],
c=document.getElementById('controls');
c.innerHTML='<label>Filter <input type="search" id="q"></label><label>Status <select id="st">'+
'<option value="">all</option></select></label><span id="hits" role="status"></span>';
const q=c.querySelector('#q'),s=c.querySelector('#st'),h=c.querySelector('#hits');
[...new Set(rows.map(r=>r.dataset.status))].sort().forEach(v=>
s.add(new Option(v.replace('_',' '),v)));
const show=()=>{let n=0;rows.forEach(r=>{const on=(!s.value||r.dataset.status===s.value)&&
r.textContent.toLowerCase().includes(q.value.toLowerCase());r.hidden=!on;n+=on});
h.textContent=n+' of '+rows.length+' records'};
q.oninput=s.onchange=show;show();
[...t.tHead.rows[0].cells].forEach((th,i)=>{const k=document.createElement('button');
k.type='button';k.textContent=th.textContent;th.textContent='';th.append(k);k.onclick=()=>{
const up=th.getAttribute('aria-sort')!=='ascending';
[...t.tHead.rows[0].cells].forEach(o=>o.removeAttribute('aria-sort'));
th.setAttribute('aria-sort',up?'ascending':'descending');
rows.sort((x,y)=>x.cells[i].textContent.localeCompare(y.cells[i].textContent)*(up?1:-1));
b.append(...rows)}})})();
)js";

// Long ids and paths may break after their joints.
std::string Breakable(std::string_view text) {
  std::string out;
  std::string part;
  for (const char c : text) {
    part += c;
    if (c != '/' && c != '_' && c != '-' && c != '.') continue;
    out += EscapeHtml(part) + "<wbr>";
    part.clear();
  }
  return out + EscapeHtml(part);
}

std::string FilledText(const Lab& lab, std::string_view text) {
  std::string out;
  for (const TextPiece& piece : FillReferences(lab, text)) {
    out += piece.file.empty() ? EscapeHtml(piece.text, true) : HtmlLink(piece.file, piece.text);
  }
  return out;
}

std::string PlainList(const std::vector<std::string>& items) {
  if (items.empty()) return "none";
  std::string out = "<ul class=\"plain\">";
  for (const std::string& item : items) out += "<li>" + item + "</li>";
  return out + "</ul>";
}

std::string StatusCell(const ReportRow& row) {
  const auto* const entry =
      std::find_if(kStatusMeanings.begin(), kStatusMeanings.end(),
                   [&](const StatusMeaning& meaning) { return row.status == meaning.status; });
  const char* const sign = entry == kStatusMeanings.end() ? "" : entry->sign;
  const std::string imported = TextAt(row.record->json, "imported_status");
  return fmt::format(
      "<span class=\"status\"><span class=\"s-{0}\" aria-hidden=\"true\">{1}</span> {2}</span>{3}",
      EscapeHtml(row.status), sign, EscapeHtml(Words(row.status)),
      imported.empty() ? "" : "<small>imported as " + EscapeHtml(Words(imported)) + "</small>");
}

std::string GatesCell(const ReportRow& row) {
  static constexpr const char* kSigns[] = {"✓", "✕", "?", "»", "–"};
  std::string out;
  for (const auto& [device_class, verdicts] : row.verdicts) {
    out += "<small>" + EscapeHtml(device_class) + "</small>";
    for (size_t gate = 0; gate < verdicts.size(); ++gate) {
      if (verdicts[gate] == nullptr) continue;
      const std::string word = TextAt(*verdicts[gate], "verdict");
      const char* sign = "";
      for (size_t i = 0; i < std::size(kVerdicts); ++i) {
        if (word == kVerdicts[i]) sign = kSigns[i];
      }
      out += fmt::format(
          "<span class=\"gate\" title=\"{}\"><span class=\"v-{}\" aria-hidden=\"true\">"
          "{}</span> {}</span>",
          EscapeHtml(TextAt(*verdicts[gate], "reason")), EscapeHtml(word), sign,
          EscapeHtml(row.VerdictText(gate, *verdicts[gate])));
    }
  }
  return out.empty() ? "none run" : out;
}

std::string RecordsTable(const ReportView& view) {
  std::string out =
      "<div id=\"controls\"></div>\n<div class=\"box\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"Records\"><table id=\"records\">\n<thead><tr><th scope=\"col\">Record</th>"
      "<th scope=\"col\">Status</th><th scope=\"col\">Decision</th><th scope=\"col\">Gates</th>"
      "<th scope=\"col\">Evidence is</th><th scope=\"col\">Sources and evidence</th>"
      "<th scope=\"col\">Gaps</th></tr></thead>\n<tbody>\n";
  for (const ReportRow& row : view.rows) {
    const Doc& record = row.record->json;
    std::vector<std::string> sources;
    std::string gaps;
    for (const Source& source : SourcesOf(row)) {
      sources.push_back(source.file.empty() ? Breakable(source.text)
                                            : HtmlLink(source.file, source.text));
    }
    for (const std::string& gap : GapTexts(record)) {
      gaps += (gaps.empty() ? "" : "; ") + EscapeHtml(gap);
    }
    out += fmt::format(
        "<tr id=\"r-{0}\" data-status=\"{1}\"><th scope=\"row\">{2}<small>{3}</small><small>{4}, "
        "{5}</small></th><td>{6}</td><td>{7}</td><td>{8}</td><td>{9}</td><td>{10}</td><td>{11}</td>"
        "</tr>\n",
        EscapeHtml(row.id), EscapeHtml(row.status), Breakable(row.id),
        EscapeHtml(TextAt(record, "name")), EscapeHtml(TextAt(record, "kind")),
        EscapeHtml(TextAt(record, "group")), StatusCell(row),
        FilledText(view.lab, TextAt(At(record, "decision"), "text")), GatesCell(row),
        EscapeHtml(row.freshness), PlainList(sources), gaps.empty() ? "none" : gaps);
  }
  return out + "</tbody></table></div>\n";
}

std::string FigureHtml(const Figure& figure, const std::string& legend = "") {
  if (figure.svg.empty()) return "<p class=\"empty\">" + figure.empty + "</p>\n";
  return fmt::format(
      "<figure style=\"margin:0\">\n{}{}</figure>\n<details><summary>The same as a "
      "table</summary>\n{}</details>\n",
      legend, figure.svg, figure.twin);
}

std::string Legend(const std::vector<std::pair<const char*, const char*>>& entries) {
  std::string out = "<ul class=\"legend\">";
  for (const auto& [drawing, words] : entries) {
    out += fmt::format("<li><svg width=\"18\" height=\"16\" aria-hidden=\"true\">{}</svg>{}</li>",
                       drawing, words);
  }
  return out + "</ul>\n";
}

std::string GainLegend() {
  return Legend(
      {{"<path d=\"M4 3.500h9v9h-9z\" class=\"mark current\"/>", "current"},
       {"<path d=\"M4 3.500h9v9h-9z\" class=\"mark stale\"/>", "stale"},
       {"<path d=\"M3 8l6-6 6 6-6 6z\" class=\"mark imported\"/>", "imported"},
       {"<path d=\"M5 4l8 8M5 12l8-8\" class=\"mark\"/>", "invalid"},
       {"<path d=\"M0 8h18M1 4v8M17 4v8\" class=\"interval current\"/>", "95 % over processes"},
       {"<path d=\"M9 0v16\" class=\"threshold\"/>", "wanted at least"},
       {"<rect x=\"2\" width=\"14\" height=\"16\" class=\"band\"/>", "A/A control"}});
}

std::string ResourceLegend() {
  return Legend({{"<circle cx=\"9\" cy=\"8\" r=\"5\" class=\"mark hopper\"/>", "sm_90a (Hopper)"},
                 {"<path d=\"M3 8l6-6 6 6-6 6z\" class=\"mark spark\"/>", "sm_121a (GB10)"}});
}

std::string RunLegend() {
  return Legend({{"<path d=\"M9 8h0\" class=\"run baseline\"/>", "baseline"},
                 {"<path d=\"M9 5v6\" class=\"run candidate\"/>", "candidate"},
                 {"<path d=\"M6 8h6\" class=\"run control\"/>", "A/A control"},
                 {"<path d=\"M9 4v8\" class=\"run out\"/>", "beyond the range, or discarded"}});
}

std::string Header(const ReportView& view) {
  int64_t evidence = 0, current = 0, passed = 0, verdicts = 0, accepted = 0;
  for (const ReportRow& row : view.rows) {
    accepted += row.status == "production_accepted" ? 1 : 0;
    for (const CitedEvidence& cited : row.evidence) {
      ++evidence;
      current += cited.state == EvidenceState::kCurrent ? 1 : 0;
    }
    for (const auto& [device_class, gates] : row.verdicts) {
      for (const Doc* verdict : gates) {
        verdicts += verdict != nullptr ? 1 : 0;
        passed += verdict != nullptr && TextAt(*verdict, "verdict") == "pass" ? 1 : 0;
      }
    }
  }
  std::string tiles;
  const auto tile = [&](int64_t number, const std::string& words) {
    tiles += fmt::format("<li><b>{}</b><span>{}</span></li>\n", CountText(number), words);
  };
  tile(static_cast<int64_t>(view.rows.size()), "records");
  tile(evidence, fmt::format("citations of evidence, {} current", CountText(current)));
  tile(verdicts, fmt::format("gate verdicts, {} passed", CountText(passed)));
  tile(accepted, "accepted for production");
  tile(static_cast<int64_t>(view.lab.log.entries.size()), "log entries");
  return fmt::format(
      "<header class=\"wrap\">\n<p class=\"kicker\">h3rt laboratory</p>\n<h1>Experiment "
      "registry</h1>\n"
      "<p class=\"lead\">Every optimisation that was tried or named, what was measured, and how "
      "much "
      "of it may be claimed. Rejected work stays, with its reasons.</p>\n<ul "
      "class=\"tiles\">\n{}</ul>\n"
      "</header>\n",
      tiles);
}

std::string MadeFrom(const ReportView& view) {
  return fmt::format(
      "<dl><dt>Registry</dt><dd class=\"mono\">{}</dd><dt>Log head</dt><dd class=\"mono\">{}</dd>"
      "<dt>Log entries</dt><dd>{}</dd><dt>Policy</dt><dd "
      "class=\"mono\">{}</dd><dt>Tool</dt><dd>h3rt "
      "{}</dd></dl>\n",
      view.registry_digest, view.lab.log.head_hash, view.lab.log.entries.size(), view.policy_digest,
      kVersion);
}

std::string HowToRead() {
  std::string out = "<h3>Statuses</h3>\n<dl>";
  for (const StatusMeaning& entry : kStatusMeanings) {
    out += fmt::format("<dt><span class=\"s-{}\" aria-hidden=\"true\">{}</span> {}</dt><dd>{}</dd>",
                       entry.status, entry.sign, Words(entry.status), entry.meaning);
  }
  out += "</dl>\n<h3>Notes</h3>\n<ul>\n";
  for (const char* note : kInterpretationNotes)
    out += fmt::format("<li>{}</li>\n", EscapeHtml(note));
  return out + "</ul>\n";
}

}  // namespace

std::string HtmlLink(std::string_view file, std::string_view text) {
  if (file.empty()) return Breakable(text);
  return fmt::format("<a href=\"{}\">{}</a>", UrlOf("../", file), Breakable(text));
}

std::string HtmlTable(std::string_view caption, const std::vector<std::string>& headings,
                      const std::vector<std::vector<std::string>>& rows) {
  std::string out = fmt::format(
      "<div class=\"box\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table><caption>{0}"
      "</caption>\n<thead><tr>",
      EscapeHtml(caption));
  const auto style = [&](size_t i) { return headings[i].starts_with('#') ? " class=\"n\"" : ""; };
  for (size_t i = 0; i < headings.size(); ++i) {
    out += fmt::format("<th scope=\"col\"{}>{}</th>", style(i),
                       EscapeHtml(headings[i].substr(*style(i) != '\0' ? 1 : 0)));
  }
  out += "</tr></thead>\n<tbody>\n";
  for (const std::vector<std::string>& row : rows) {
    H3RT_CHECK(row.size() == headings.size());
    out += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) out += fmt::format("<td{}>{}</td>", style(i), row[i]);
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

absl::StatusOr<std::string> HtmlPage(const ReportView& view) {
  H3RT_ASSIGN_OR_RETURN(const std::vector<SequenceFigure> runs, SequenceFigures(view));
  std::string sequence =
      "<p class=\"empty\">No timing with samples is in the store yet. <code>h3rt lab run ID --gate "
      "isolated --bundle OUT</code> on a machine with a GPU and <code>h3rt lab import bundle "
      "OUT</code> "
      "here bring some.</p>\n";
  if (!runs.empty()) sequence = RunLegend();
  for (const SequenceFigure& run : runs) {
    sequence += fmt::format("<h3>{}</h3>\n<p class=\"about\">{}</p>\n{}", EscapeHtml(run.title),
                            run.note, FigureHtml(run.figure));
  }
  struct Section {
    const char* id;
    const char* link;
    const char* title;
    const char* about;
    std::string content;
  };
  const Section sections[] = {
      {"status", "Status", "Status",
       "Filled: the status held here. Outlined: what the imported page said.",
       FigureHtml(StatusFigure(view))},
      {"gates", "Gates", "Gates",
       "Verdicts in the order of the gates, a device class at a time. Hollow: the evidence behind "
       "it "
       "is stale.",
       FigureHtml(GateFigure(view))},
      {"gains", "Gains", "Gains",
       "Baseline over candidate, less one: to the right of zero the candidate is faster.",
       FigureHtml(GainFigure(view), GainLegend())},
      {"runs", "Runs", "Runs, sample by sample",
       "Time a call in the order of the run. Steps, drift and spikes show here first.", sequence},
      {"resources", "Resources", "Resources: sm_90a against sm_121a",
       "What the compiler took for each kernel, from its newest valid report.",
       FigureHtml(ResourceFigure(view), ResourceLegend())},
      {"log", "Log", "Log",
       "Entries in order; nothing is ever removed. In words: <a "
       "href=\"vortex_exact_attention/EXPERIMENT_LOG.md\">EXPERIMENT_LOG.md</a>.",
       FigureHtml(TimelineFigure(view))},
      {"registry", "Records", "Records",
       "The same as <a href=\"EXPERIMENT_REGISTRY.md\">EXPERIMENT_REGISTRY.md</a>; authoritative "
       "is <a "
       "href=\"experiment_registry.json\">experiment_registry.json</a>.",
       RecordsTable(view)},
      {"reading", "How to read it", "How to read it", "What the words on this page mean.",
       HowToRead()},
      {"made", "Made from", "Made from",
       "The same files give the same bytes. <code>h3rt lab report --check</code> compares.",
       MadeFrom(view)}};
  std::string links, content;
  for (const Section& section : sections) {
    links += fmt::format("<li><a href=\"#{}\">{}</a></li>", section.id, section.link);
    content += fmt::format(
        "<section id=\"{0}\" aria-labelledby=\"{0}-h\">\n<h2 id=\"{0}-h\">{1}</h2>\n<p "
        "class=\"about\">{2}</p>\n{3}</section>\n",
        section.id, section.title, section.about, section.content);
  }
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\">\n<title>h3rt laboratory: experiment "
      "registry</title>\n<link rel=\"icon\" "
      "href=\"data:,\">\n<style>{}</style>\n</head>\n<body>\n<a "
      "class=\"skip\" href=\"#main\">Skip to the content</a>\n{}<nav aria-label=\"Sections\"><ul "
      "class=\"wrap\">{}</ul></nav>\n<main id=\"main\" "
      "class=\"wrap\">\n{}</main>\n<script>{}</script>\n"
      "</body>\n</html>\n",
      kStyle, Header(view), links, content, kScript);
}

}  // namespace h3rt::lab
