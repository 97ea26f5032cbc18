#include <dnnl.h>
#include <fmt/format.h>

#include <cstdio>
#include <fstream>

#include "apps/h3rt/cli.h"
#include "h3rt/base/units.h"
#include "h3rt/base/version.h"
#include "h3rt/cuda/architecture_table.h"
#include "h3rt/cuda/device_info.h"
#include "h3rt/media/ffmpeg_library.h"
#include "h3rt/runtime/memory.h"

namespace h3rt::cli {
namespace {

std::string CpuName() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(':');
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos)
      return line.substr(colon + 2);
  }
  return "unknown";
}

const char* IsaName() {
  switch (dnnl_get_effective_cpu_isa()) {
    case dnnl_cpu_isa_sse41:
      return "SSE4.1";
    case dnnl_cpu_isa_avx:
      return "AVX";
    case dnnl_cpu_isa_avx2:
      return "AVX2";
    case dnnl_cpu_isa_all:
      return "all";
    default:
      return "AVX-512 or other";
  }
}

Json JsonOf(const ArchitectureRow& row) {
  return {{"compute_capability", NameOf(row.capability)},
          {"products", row.products},
          {"known", row.known},
          {"target", row.target},
          {"built", row.built},
          {"exact_attention", NameOf(row.attention)},
          {"runs_exact_attention", row.runs_exact_attention},
          {"missing", row.missing}};
}

std::string TextOf(const ArchitectureRow& row) {
  std::string text =
      fmt::format("  {:<5} {:<8} {:<10} {:<22} {}\n", NameOf(row.capability),
                  row.known ? "sm_" + row.target : "-", row.built ? "built" : "not built",
                  NameOf(row.attention), row.products);
  for (const std::string& missing : row.missing) text += "          missing: " + missing + "\n";
  return text;
}

absl::StatusOr<Outcome> Run(bool json) {
  H3RT_RETURN_IF_ERROR(ResolveThreads({}).status());  // a variable that other commands refuse
  absl::StatusOr<DeviceList> listed = ListDevices();
  if (absl::IsInvalidArgument(listed.status()))
    return listed.status();  // the variable, not the machine
  // A driver that fails is what this command is for: it is reported and the rest goes on.
  const DeviceList devices =
      listed.ok() ? *std::move(listed) : DeviceList{.reason = MessageOf(listed.status())};
  H3RT_ASSIGN_OR_RETURN(const uint64_t available, AvailableMemory());
  const DeviceBuild build = ThisDeviceBuild();
  const dnnl_version_t* dnnl = dnnl_version();
  const absl::StatusOr<std::string> ffmpeg = FfmpegVersion();
  Json result = {
      {"version", kVersion},
      {"cpu",
       {{"name", CpuName()}, {"threads", ThreadPool::HardwareThreads()}, {"isa", IsaName()}}},
      {"memory", {{"available_bytes", available}}},
      {"libraries",
       {{"onednn", fmt::format("{}.{}.{}", dnnl->major, dnnl->minor, dnnl->patch)},
        {"ffmpeg", ffmpeg.ok() ? Json(*ffmpeg) : Json(nullptr)}}},
      {"cuda_targets", build.targets},
      {"driver", devices.driver_version},
      {"devices", Json::array()},
      {"architectures", Json::array()}};
  std::string text = fmt::format(
      "h3rt {}\nCPU      {}, {} threads, {}\nmemory   {} available\noneDNN   {}\nFFmpeg   {}\n",
      kVersion, CpuName(), ThreadPool::HardwareThreads(), IsaName(), FormatBytes(available),
      result["libraries"]["onednn"].get<std::string>(),
      ffmpeg.ok() ? *ffmpeg : "not found, clips become .y4m + .wav: " + MessageOf(ffmpeg.status()));
  if (!ffmpeg.ok()) result["libraries"]["ffmpeg_reason"] = MessageOf(ffmpeg.status());

  text += fmt::format(
      "driver   {}\nGPUs     {}\n",
      devices.driver_version.empty() ? "none" : "CUDA " + devices.driver_version,
      devices.devices.empty() ? "none: " + devices.reason : std::to_string(devices.devices.size()));
  for (const DeviceInfo& device : devices.devices) {
    const ArchitectureRow row = ArchitectureRowOf(device.capability, build);
    Json item = JsonOf(row);
    item["index"] = device.index;
    item["name"] = device.name;
    item["memory_bytes"] = device.memory_bytes;
    item["integrated"] = device.integrated;
    item["faked"] = device.faked;
    result["devices"].push_back(std::move(item));
    text += fmt::format("  cuda:{} {}{}{}\n", device.index, device.name,
                        device.memory_bytes > 0 ? ", " + FormatBytes(device.memory_bytes) : "",
                        device.integrated ? ", shares the host's memory" : "");
    text += TextOf(row);
  }
  text += "architectures: capability, target, in this build, exact attention, products\n";
  for (const ArchitectureRow& row : ArchitectureTable(build)) {
    result["architectures"].push_back(JsonOf(row));
    text += TextOf(row);
  }
  result["runs_on"] = "cpu";
  text += "generate runs on: cpu\n";
  if (!json) std::fputs(text.c_str(), stdout);
  return Outcome{.code = ExitCode::kDone, .json = std::move(result)};
}

}  // namespace

void AddDoctor(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand(
      "doctor", "Say what this machine has, what this build holds for it, and what would run");
  AddJsonFlag(*command, invocation);
  command->callback(
      [&invocation] { invocation.run = [&invocation] { return Run(invocation.json); }; });
}

}  // namespace h3rt::cli
