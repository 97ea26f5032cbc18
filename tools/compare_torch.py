#!/usr/bin/env python3
"""Times PyTorch's attention on the inputs of a golden case and writes evidence of it.

    tools/compare_torch.py INDEX.json --case canonical_h3_37808 --bundle torch.bundle

Needs a host with PyTorch and a GPU. The inputs are those of `h3rt lab attention-golden`, made from
integers on the device and compared with the hashes of the index. Each backend of scaled dot product
attention is timed with CUDA events; the bundle holds one piece of `timing_single` evidence a backend,
which `h3rt lab import bundle` takes into the record of --record. A backend that does not take the
problem is named with its reason and leaves nothing.

What belongs to a library that is not ours is null in the evidence: sources, build, variant. Its file
has a hash (binary_sha256), its kernels their names.
"""

import argparse
import hashlib
import json
import math
import os
import platform
import struct
import sys
import time
import zlib

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
STREAM = 0xD1B54A32D192ED03
FIRST = 0xBF58476D1CE4E5B9
SECOND = 0x94D049BB133111EB
RECORDS = {"cudnn": "backend-cudnn-attention", "flash": "backend-torch-flash-attention"}
MOST_IN_DOCUMENT = (1 << 53) - 1


# ---------------------------------------------------------------- inputs, without PyTorch


def element(seed, stream, index):
    """Element `index` of a stream; exact in float32. The form: tests/data/README.md."""
    z = (seed * GOLDEN + stream * STREAM + index * GOLDEN) & MASK
    z = ((z ^ (z >> 30)) * FIRST) & MASK
    z = ((z ^ (z >> 27)) * SECOND) & MASK
    z ^= z >> 31
    pieces = (z & 0xFFFF) + (z >> 16 & 0xFFFF) + (z >> 32 & 0xFFFF) + (z >> 48)
    return (pieces - 131070) / 32768


def bits_of(value, dtype):
    """A float32 value rounded to nearest even, as 16 bits."""
    if dtype == "fp16":
        return struct.unpack("<H", struct.pack("<e", value))[0]
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def plain_inputs(case):
    """{"q", "k", "v"} as bytes, an element at a time: for small cases and tests."""
    batch, heads, dim, dtype = case["B"], case["Hk"], case["D"], case["dtype"]
    scale = 0.0625 if case.get("flat") else 1.0
    bias = case.get("bias", 3.0)
    width = heads * dim
    q, k, v = bytearray(), bytearray(), bytearray()
    for i in range(batch * case["Nq"] * case["Hq"] * dim):
        q += struct.pack("<H", bits_of(element(case["seed"], 0, i) * scale, dtype))
    for i in range(batch * case["Nk"] * width):
        common = i // (case["Nk"] * width) * width + i % width
        value = element(case["seed"], 1, i) + bias * element(case["seed"], 3, common)
        k += struct.pack("<H", bits_of(value, dtype))
        v += struct.pack("<H", bits_of(element(case["seed"], 2, i), dtype))
    return {"q": bytes(q), "k": bytes(k), "v": bytes(v)}


# ---------------------------------------------------------------- documents


def canonical(document):
    """The canonical text: keys sorted by bytes, no space, no float, integers below 2^53."""

    def check(value):
        if isinstance(value, float):
            raise ValueError(f"a float in a hashed document: {value}")
        if isinstance(value, int) and abs(value) > MOST_IN_DOCUMENT:
            raise ValueError(f"an integer beyond 2^53 - 1: {value}")
        if isinstance(value, dict):
            for key, item in value.items():
                if not isinstance(key, str):
                    raise ValueError(f"a key that is no text: {key}")
                check(item)
        elif isinstance(value, (list, tuple)):
            for item in value:
                check(item)

    check(document)
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8")


def digest(data):
    return hashlib.sha256(data).hexdigest()


def rounded(value):
    """Half away from zero, as the laboratory rounds."""
    if math.isnan(value):
        return 0
    value = max(-float(MOST_IN_DOCUMENT), min(float(MOST_IN_DOCUMENT), value))
    below = math.floor(abs(value))
    whole = below + (1 if abs(value) - below >= 0.5 else 0)
    return int(math.copysign(whole, value)) if whole else 0


def quantile(values, share):
    ordered = sorted(values)
    place = (len(ordered) - 1) * min(1.0, max(0.0, share))
    below = int(place)
    rest = place - below
    if rest == 0 or below + 1 == len(ordered):
        return ordered[below]
    return ordered[below] + rest * (ordered[below + 1] - ordered[below])


def plain_sum(values):
    """In order: sum() of newer Pythons compensates."""
    total = 0.0
    for value in values:
        total += value
    return total


def lag_one(values):
    if len(values) < 3:
        return 0.0
    mean = plain_sum(values) / len(values)
    squares = products = 0.0
    for i, value in enumerate(values):
        squares += (value - mean) * (value - mean)
        if i > 0:
            products += (value - mean) * (values[i - 1] - mean)
    return products / squares if squares > 0 else 0.0


def drift(values):
    if len(values) < 2:
        return 0.0
    points = list(values)
    if len(points) > 1024:
        n = len(values)
        points = [quantile(values[i * n // 1024 : (i + 1) * n // 1024], 0.5) for i in range(1024)]
    slopes = [
        (points[j] - points[i]) / (j - i)
        for i in range(len(points))
        for j in range(i + 1, len(points))
    ]
    centre = quantile(points, 0.5)
    return 0.0 if centre == 0 else quantile(slopes, 0.5) * len(points) / centre


def statistics(picoseconds):
    """The `statistics` of a timing_single body; `h3rt lab verify --recompute` computes the same."""
    times = [float(p) for p in picoseconds]
    median = quantile(times, 0.5)
    distances = [abs(t - median) for t in times]
    mad = quantile(distances, 0.5)
    mean = plain_sum(times) / len(times)
    deviation = 0.0
    if len(times) > 1:
        squares = plain_sum((t - mean) * (t - mean) for t in times)
        deviation = math.sqrt(squares / (len(times) - 1))
    document = {"n": len(times), "discarded": 0}
    for name, share in (("min", 0), ("p05", 0.05), ("p25", 0.25), ("p50", 0.5), ("p75", 0.75),
                        ("p95", 0.95), ("p99", 0.99), ("max", 1)):
        document[name + "_ps"] = rounded(quantile(times, share))
    if len(times) < 1000:
        document["p99_ps"] = None
    document["mean_ps"] = rounded(mean)
    document["sd_ps"] = rounded(deviation)
    document["cv_ppm"] = rounded(deviation / mean * 1e6) if mean > 0 else 0
    document["robust_cv_ppm"] = rounded(1.4826 * mad / median * 1e6) if median > 0 else 0
    document["iqr_ps"] = rounded(quantile(times, 0.75) - quantile(times, 0.25))
    document["lag1_e6"] = rounded(lag_one(times) * 1e6)
    document["drift_ppm"] = rounded(drift(times) * 1e6)
    document["outliers"] = sum(1 for d in distances if d > 5 * mad)
    return document


def packed_samples(picoseconds):
    """16 bytes a sample: process, quad, slot, arm, role, flags, then the time."""
    if len(picoseconds) > 65535 or min(picoseconds) <= 0:
        raise ValueError("1 to 65535 samples above zero")
    return b"".join(struct.pack("<HHBBBBq", 0, i, 0, 0, 0, 0, p) for i, p in enumerate(picoseconds))


def level_of(case):
    if case["Nq"] * case["Hq"] >= 1 << 20:
        return "canonical"
    if case["Nq"] * case["Nk"] <= 128 * 64:
        return "toy"
    return "aligned" if case["Nq"] % 128 == 0 and case["Nk"] % 128 == 0 else "ragged"


def workload_of(case):
    dtype = {"bf16": "bf16", "fp16": "f16"}[case["dtype"]]
    return {
        "id": case["name"],
        "level": level_of(case),
        "dims": {"batch": case["B"], "q_len": case["Nq"], "k_len": case["Nk"],
                 "q_heads": case["Hq"], "k_heads": case["Hk"], "head_dim": case["D"],
                 "causal": int(case["causal"])},
        "dtypes": {name: dtype for name in ("q", "k", "v", "o")},
        "generator": "attention-golden/1",
        "seed": case["seed"],
        "input_sha256": {name: case[name + "_sha256"] for name in ("q", "k", "v")},
        "calls": 50 if level_of(case) == "canonical" else 1,
    }


def own_text():
    with open(__file__, "rb") as file:
        return file.read()


def envelope(record, arm, case, picoseconds, warmups, facts):
    """One piece of timing_single evidence. `facts`: target, environment, kernels, binary_sha256,
    argv, start_us, end_us."""
    return {
        "schema": "lab.evidence/1",
        "kind": "timing_single",
        "origin": "measured",
        "word": "executed",
        "experiment": record,
        "vid": None,
        "target": facts["target"],
        "subject": {
            "source_digest": None,
            "source_paths": [],
            "build_digest": None,
            "binary_sha256": facts["binary_sha256"],
            "kernels": [{"symbol": k[:2000], "code_sha256": None} for k in facts["kernels"]],
            "baseline": None,
        },
        "workload": workload_of(case),
        "environment": facts["environment"],
        "invocation": {
            "argv": facts["argv"],
            "start_us": facts["start_us"],
            "end_us": facts["end_us"],
            "exit_code": 0,
            "signal": None,
            "peak_rss_bytes": None,
            "peak_device_bytes": None,
            "variables": {},
        },
        "harness": {
            "version": "compare_torch/1",
            "source_digest": digest(own_text()),
            "commit": None,
            "dirty_digest": None,
            "policy_digest": None,
        },
        "plan": None,
        "body": {
            "arm": arm,
            "samples_blob": "samples",
            "unit": "ns",
            "mode": "single",
            "batch": 1,
            "timer": "event",
            "tick_ns": 500,
            "warmups": warmups,
            "statistics": statistics(picoseconds),
        },
        "blobs": [],
    }


def bundle(pieces):
    """The bytes of a bundle: [(envelope, {blob name: bytes})]."""
    entries = {}
    for document, blobs in pieces:
        document = dict(document, blobs=[])
        for name in sorted(blobs):
            stream = zlib.compress(blobs[name], 9)
            entries[digest(stream) + ".z"] = stream
            document["blobs"].append({"name": name, "sha256": digest(stream), "bytes": len(stream),
                                      "raw_bytes": len(blobs[name]), "encoding": "zlib"})
        text = canonical(document)
        entries[digest(text) + ".json"] = text
    index = {"entries": [{"name": name, "bytes": len(entries[name]), "sha256": name[:64]}
                         for name in sorted(entries)]}
    body = b"".join(entries[name] for name in sorted(entries))
    return b"h3rt-lab-bundle/1\n" + canonical(index) + b"\n" + body


# ---------------------------------------------------------------- with PyTorch


def device_inputs(torch, case):
    """q, k, v on the device, [B, N, H, D]."""

    def as_signed(value):
        value &= MASK
        return value - (1 << 64) if value >> 63 else value

    def shifted(z, bits):
        return (z >> bits) & ((1 << (64 - bits)) - 1)

    def stream(number, elements):
        out = torch.empty(elements, dtype=torch.float32, device="cuda")
        for begin in range(0, elements, 1 << 25):
            end = min(elements, begin + (1 << 25))
            z = torch.arange(begin, end, dtype=torch.int64, device="cuda")
            z = z * as_signed(GOLDEN) + as_signed(case["seed"] * GOLDEN + number * STREAM)
            z = (z ^ shifted(z, 30)) * as_signed(FIRST)
            z = (z ^ shifted(z, 27)) * as_signed(SECOND)
            z = z ^ shifted(z, 31)
            total = (z & 0xFFFF) + (shifted(z, 16) & 0xFFFF) + (shifted(z, 32) & 0xFFFF)
            total = total + shifted(z, 48)
            out[begin:end] = (total - 131070).to(torch.float32) / 32768
        return out

    dtype = torch.bfloat16 if case["dtype"] == "bf16" else torch.float16
    batch, dim = case["B"], case["D"]
    q_shape = (batch, case["Nq"], case["Hq"], dim)
    k_shape = (batch, case["Nk"], case["Hk"], dim)
    q = stream(0, math.prod(q_shape)).view(q_shape)
    if case.get("flat"):
        q = q * 0.0625
    q = q.to(dtype)
    common = stream(3, batch * case["Hk"] * dim).view(batch, 1, case["Hk"], dim)
    k = (stream(1, math.prod(k_shape)).view(k_shape) + case.get("bias", 3.0) * common).to(dtype)
    v = stream(2, math.prod(k_shape)).view(k_shape).to(dtype)
    tensors = {"q": q, "k": k, "v": v}
    for name, tensor in tensors.items():
        found = digest(memoryview(tensor.contiguous().view(torch.int16).cpu().numpy()).cast("B"))
        if found != case[name + "_sha256"]:
            sys.exit(f"compare_torch: another {name}: got {found}, wanted {case[name + '_sha256']}")
    return tensors


def first_line(path, name=""):
    try:
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith(name):
                    return line[len(name) :].strip(' \t:="\n')
    except OSError:
        pass
    return ""


def environment_of(torch):
    properties = torch.cuda.get_device_properties(0)
    driver = first_line("/proc/driver/nvidia/version", "NVRM version:").split("Kernel Module")[-1]
    words = [w for w in driver.split() if w.replace(".", "").isdigit()]
    boot = first_line("/proc/sys/kernel/random/boot_id")
    flags = first_line("/proc/cpuinfo", "flags").split()
    system = os.uname()
    pretty = first_line("/etc/os-release", "PRETTY_NAME")
    return {
        "class": {
            "device": properties.name,
            "capability": f"{properties.major}.{properties.minor}",
            "driver": words[0] if words else None,
            "runtime": torch.version.cuda,
            "toolkit": None,
            "ecc": None,
            "mig": None,
            "os": (pretty + ", " if pretty else "") + system.sysname + " " + system.release,
            "cpu": first_line("/proc/cpuinfo", "model name") or platform.machine(),
        },
        "instance": {
            "boot_id_sha256": digest(boot.encode()) if boot else None,
            "uuid_sha256": None,
            "clock_before_mhz": None,
            "clock_after_mhz": None,
            "power_limit_mw": None,
            "temperature_before_c": None,
            "temperature_after_c": None,
            "throttle_before": None,
            "throttle_after": None,
            "other_memory_bytes": None,
            "load_milli": int(os.getloadavg()[0] * 1000 + 0.5),
            "cores": os.cpu_count(),
            "hypervisor": ("hypervisor" in flags) if flags else None,
        },
    }


def library_of(torch, backend):
    """SHA-256 of the file that holds the backend's code; None where it is not found."""
    root = os.path.dirname(torch.__file__)
    places = [os.path.join(root, "lib", "libtorch_cuda.so")]
    if backend == "cudnn":
        folder = os.path.join(os.path.dirname(root), "nvidia", "cudnn", "lib")
        if os.path.isdir(folder):
            names = sorted(n for n in os.listdir(folder) if n.startswith("libcudnn_graph.so"))
            places = [os.path.join(folder, n) for n in names] + places
    for place in places:
        if os.path.isfile(place):
            found = hashlib.sha256()
            with open(place, "rb") as file:
                while block := file.read(1 << 24):
                    found.update(block)
            return found.hexdigest()
    return None


def measure(torch, backend, case, inputs, samples, warmups):
    """(picoseconds, kernel names) of a backend, or raises what it says of the problem."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    chosen = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}[backend]
    q, k, v = (inputs[name].transpose(1, 2) for name in ("q", "k", "v"))
    groups = {"enable_gqa": True} if case["Hq"] != case["Hk"] else {}

    def call():
        return torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=case["causal"], **groups)

    times = []
    with sdpa_kernel(chosen), torch.no_grad():
        for _ in range(warmups):
            call()
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            call()
            torch.cuda.synchronize()
        kernels = sorted({event.key for event in profile.key_averages()
                          if getattr(event, "device_time_total", 1) > 0
                          and not event.key.startswith(("cuda", "Activity"))})
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for _ in range(samples):
            start.record()
            call()
            stop.record()
            torch.cuda.synchronize()
            times.append(round(start.elapsed_time(stop) * 1e9))
    return times, kernels


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("index", help="index.json of golden cases")
    parser.add_argument("--case", default="canonical_h3_37808")
    parser.add_argument("--backend", action="append", choices=sorted(RECORDS),
                        help="default: all")
    parser.add_argument("--record", action="append", default=[], metavar="BACKEND=ID",
                        help="the record that a backend's evidence is of")
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--warmups", type=int, default=5)
    parser.add_argument("--bundle", help="where the evidence goes")
    options = parser.parse_args(arguments)
    with open(options.index, encoding="utf-8") as file:
        cases = [case for part in json.load(file)["cases"].values() for case in part]
    by_name = {case["name"]: case for case in cases}
    if options.case not in by_name:
        parser.error(f"--case: got {options.case}, wanted one of {', '.join(by_name)}")
    case = by_name[options.case]
    records = dict(RECORDS)
    for pair in options.record:
        backend, _, record = pair.partition("=")
        if backend not in RECORDS or not record:
            parser.error(f"--record: got {pair}, wanted {' or '.join(sorted(RECORDS))}=ID")
        records[backend] = record
    if not 1 <= options.samples <= 65535:
        parser.error("--samples: 1 to 65535")
    try:
        import torch
    except ImportError:
        print("compare_torch: PyTorch is not installed here", file=sys.stderr)
        return 4
    if not torch.cuda.is_available():
        print("compare_torch: PyTorch sees no GPU", file=sys.stderr)
        return 4

    inputs = device_inputs(torch, case)
    major, minor = torch.cuda.get_device_capability(0)
    pieces = []
    for backend in options.backend or sorted(RECORDS):
        start_us = time.time_ns() // 1000
        try:
            times, kernels = measure(torch, backend, case, inputs, options.samples, options.warmups)
        except RuntimeError as error:
            print(f"{backend}: does not take it: {str(error).splitlines()[0]}")
            continue
        facts = {
            "target": f"sm_{major}{minor}a",
            "environment": environment_of(torch),
            "kernels": kernels,
            "binary_sha256": library_of(torch, backend),
            "argv": ["compare_torch.py", "--case", case["name"], "--backend", backend,
                     "--samples", str(options.samples), "torch " + torch.__version__],
            "start_us": start_us,
            "end_us": time.time_ns() // 1000,
        }
        document = envelope(records[backend], backend, case, times, options.warmups, facts)
        pieces.append((document, {"samples": packed_samples(times)}))
        p50 = document["body"]["statistics"]["p50_ps"] / 1e9
        print(f"{backend}: {case['name']}: {p50:.4f} ms, median of {len(times)}")
    if not pieces:
        print("compare_torch: nothing was measured", file=sys.stderr)
        return 10
    if options.bundle:
        with open(options.bundle + ".part", "wb") as file:
            file.write(bundle(pieces))
        os.replace(options.bundle + ".part", options.bundle)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
