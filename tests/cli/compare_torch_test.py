#!/usr/bin/env python3
"""tools/compare_torch.py without PyTorch: its generator against recorded hashes, and its evidence
against the laboratory, which has to take it in and compute the same statistics.

    compare_torch_test.py SOURCE_DIR H3RT
"""

import importlib.util
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, PROGRAM = sys.argv[1], sys.argv[2]
RECORD = "backend-flashattention-3"  # one that the committed registry has


def load():
    spec = importlib.util.spec_from_file_location(
        "compare_torch", os.path.join(SOURCE, "tools", "compare_torch.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tool = load()
with open(os.path.join(SOURCE, "tests/data/sage2/index.json"), encoding="utf-8") as index:
    CASES = {case["name"]: case for part in json.load(index)["cases"].values() for case in part}

NO_INSTANCE = ["boot_id_sha256", "uuid_sha256", "clock_before_mhz", "clock_after_mhz",
               "power_limit_mw", "temperature_before_c", "temperature_after_c", "throttle_before",
               "throttle_after", "other_memory_bytes", "load_milli", "cores", "hypervisor"]
NO_CLASS = ["capability", "driver", "runtime", "toolkit", "ecc", "mig", "os", "cpu"]


def piece(picoseconds):
    facts = {
        "target": "sm_90a",
        "environment": {"class": dict({name: None for name in NO_CLASS}, device="a test"),
                        "instance": {name: None for name in NO_INSTANCE}},
        "kernels": ["a_kernel"],
        "binary_sha256": None,
        "argv": ["compare_torch_test.py"],
        "start_us": 1_780_000_000_000_000,
        "end_us": 1_780_000_001_000_000,
    }
    document = tool.envelope(RECORD, "flash", CASES["canonical_h3_37808"], picoseconds, 5, facts)
    return document, {"samples": tool.packed_samples(picoseconds)}


class Inputs(unittest.TestCase):
    def test_hashes_are_those_of_the_library(self):
        # bf16, fp16, two heads of 64, no bias would be large: the small ones.
        for name in ("one_row", "fp16_192", "d64_200"):
            for tensor, data in tool.plain_inputs(CASES[name]).items():
                self.assertEqual(tool.digest(data), CASES[name][tensor + "_sha256"], (name, tensor))

    def test_another_seed_is_seen(self):
        case = dict(CASES["one_row"], seed=CASES["one_row"]["seed"] + 1)
        self.assertNotEqual(tool.digest(tool.plain_inputs(case)["q"]), case["q_sha256"])


class Documents(unittest.TestCase):
    def test_canonical(self):
        self.assertEqual(tool.canonical({"b": [1, None, True], "a": "ä\n"}),
                         '{"a":"ä\\n","b":[1,null,true]}'.encode())
        for wrong in (1.5, [float("nan")], {"a": 1 << 53}, {1: 2}):
            with self.assertRaises(ValueError):
                tool.canonical(wrong)

    def test_rounding_is_half_away_from_zero(self):
        self.assertEqual([tool.rounded(x) for x in (0.5, 1.5, 2.5, -0.5, -2.5, 0.49999999999999994)],
                         [1, 2, 3, -1, -3, 0])

    def test_samples_out_of_range_are_refused(self):
        for wrong in ([0], [-1], [1] * 65536):
            with self.assertRaises(ValueError):
                tool.packed_samples(wrong)


class Laboratory(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        for part in ("research", "benchmarks", "h3rt"):
            shutil.copytree(os.path.join(SOURCE, part), os.path.join(self.root, part))
        shutil.copy(os.path.join(SOURCE, "README.md"), self.root)

    def tearDown(self):
        shutil.rmtree(self.root)

    def lab(self, *words):
        return subprocess.run([PROGRAM, "lab", *words, "--root", self.root], check=False,
                              capture_output=True, text=True)

    def write(self, data):
        path = os.path.join(self.root, "a.bundle")
        with open(path, "wb") as file:
            file.write(data)
        return path

    def test_a_bundle_is_taken_in_and_recomputes(self):
        draw = random.Random(7)
        few = [50_000_000_000 + draw.randrange(-10**9, 10**9) for _ in range(41)]
        many = [30_000_000_000 + draw.randrange(10**9) for _ in range(1500)]
        done = self.lab("import", "bundle", self.write(tool.bundle([piece(few), piece(many)])))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("2", done.stdout)
        again = self.lab("verify", "--recompute")
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)

    def test_other_statistics_do_not_recompute(self):
        document, blobs = piece([10**9, 2 * 10**9, 3 * 10**9])
        document["body"]["statistics"]["p50_ps"] += 1
        self.lab("import", "bundle", self.write(tool.bundle([(document, blobs)])))
        done = self.lab("verify", "--recompute")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("E-EV-RECOMPUTE", done.stdout + done.stderr)

    def test_a_changed_byte_is_refused(self):
        data = bytearray(tool.bundle([piece([10**9] * 5)]))
        data[-3] ^= 1
        done = self.lab("import", "bundle", self.write(bytes(data)))
        self.assertEqual(done.returncode, 7, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
