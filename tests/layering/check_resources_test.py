"""tools/check_resources and keep_ptxas_report on reports of known content."""
import copy
import os
import subprocess
import sys
import tempfile
import unittest

import tool

check = tool.load("check_resources")

REPORT = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN4h3rt4demoEPj' for 'sm_90a'
ptxas info    : Function properties for _ZN4h3rt6helperEv
    800 bytes stack frame, 700 bytes spill stores, 600 bytes spill loads
ptxas info    : Function properties for _ZN4h3rt4demoEPj
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 168 registers, used 2 barriers, 128 bytes smem, 16 bytes cmem[2]
ptxas info    : Compile time = 1.0 ms
ptxas info    : Compiling entry function '_ZN4h3rt4demoEPj' for 'sm_121a'
ptxas info    : Function properties for _ZN4h3rt4demoEPj
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 0 barriers
"""

BUDGET = {
    "architectures": ["sm_90a", "sm_121a"],
    "kernels": {
        "h3rt::demo": {
            "sm_90a": {"registers": 168, "spill_bytes": 12, "stack_bytes": 16,
                       "shared_bytes": 128},
            "sm_121a": {"registers": 40, "spill_bytes": 0, "stack_bytes": 0, "shared_bytes": 0},
        }
    },
}


def kernels():
    return [("h3rt::demo", a, dict(m)) for _, a, m in check.parse_report(REPORT)]


class Reports(unittest.TestCase):
    def test_every_number_is_read(self):
        self.assertEqual(check.parse_report(REPORT), [
            ("_ZN4h3rt4demoEPj", "sm_90a",
             {"stack_bytes": 16, "spill_bytes": 12, "registers": 168, "shared_bytes": 128}),
            ("_ZN4h3rt4demoEPj", "sm_121a",
             {"stack_bytes": 0, "spill_bytes": 0, "registers": 40, "shared_bytes": 0}),
        ])

    def test_names_keep_template_arguments_and_lose_signatures(self):
        self.assertEqual(check.strip_signature("h3rt::demo(unsigned int*)"), "h3rt::demo")
        self.assertEqual(check.strip_signature("void h3rt::k<h3rt::C<(bool)1> >(int, void (*)(int))"),
                         "h3rt::k<h3rt::C<(bool)1> >")


class Budget(unittest.TestCase):
    def test_at_the_budget_passes(self):
        self.assertEqual(check.compare(kernels(), BUDGET), [])

    def test_one_above_any_measure_fails(self):
        for index in (0, 1):
            for measure in check.MEASURES:
                measured = kernels()
                measured[index][2][measure] += 1
                found = check.compare(measured, BUDGET)
                self.assertEqual(len(found), 1, found)
                self.assertIn(measure, found[0])

    def test_an_unlisted_kernel_fails(self):
        measured = kernels() + [("h3rt::other", "sm_90a", kernels()[0][2])]
        self.assertEqual(check.compare(measured, BUDGET),
                         ["h3rt::other for sm_90a is not listed"])

    def test_a_missing_architecture_fails_on_either_side(self):
        self.assertEqual(check.compare(kernels()[:1], BUDGET),
                         ["h3rt::demo was not built for sm_121a"])
        budget = copy.deepcopy(BUDGET)
        del budget["kernels"]["h3rt::demo"]["sm_121a"]
        self.assertEqual(check.compare(kernels(), budget),
                         ["h3rt::demo has no budget for sm_121a"])

    def test_an_entry_that_no_build_has_fails(self):
        budget = copy.deepcopy(BUDGET)
        budget["kernels"]["h3rt::gone"] = budget["kernels"]["h3rt::demo"]
        self.assertEqual(len(check.compare(kernels(), budget)), 2)

    def test_a_measure_that_is_missing_fails(self):
        measured = kernels()
        del measured[0][2]["spill_bytes"]
        self.assertEqual(len(check.compare(measured, BUDGET)), 1)
        budget = copy.deepcopy(BUDGET)
        del budget["kernels"]["h3rt::demo"]["sm_90a"]["stack_bytes"]
        self.assertEqual(len(check.compare(kernels(), budget)), 1)


class Launcher(unittest.TestCase):
    def launch(self, folder, script):
        return subprocess.run(
            [sys.executable, os.path.join(tool.TOOLS, "keep_ptxas_report"), "sh", "-c", script,
             "sh", "-o", os.path.join(folder, "a.cu.o")],
            capture_output=True, text=True, check=False)

    def test_the_report_is_kept_and_the_rest_is_shown(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.launch(folder, f"cat >&2 <<'END'\nwarning: a\n{REPORT}warning: b\nEND\n")
            self.assertEqual((done.returncode, done.stderr), (0, "warning: a\nwarning: b\n"))
            with open(os.path.join(folder, "a.cu.o.ptxas"), encoding="utf-8") as f:
                self.assertEqual(f.read(), REPORT)

    def test_a_failed_compile_keeps_its_exit_code_and_no_report(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.launch(folder, "echo broken >&2; exit 3")
            self.assertEqual((done.returncode, done.stderr), (3, "broken\n"))
            self.assertEqual(os.listdir(folder), [])

    def test_nothing_to_compare_and_objects_without_report_fail(self):
        budget = os.path.join(tool.TOOLS, "..", "h3rt", "device", "resource_budget.json")
        command = [sys.executable, os.path.join(tool.TOOLS, "check_resources"), "--budget", budget]
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(command + [folder], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 10, done.stdout)
            open(os.path.join(folder, "a.cu.o"), "wb").close()
            with open(os.path.join(folder, "b.cu.o.ptxas"), "w", encoding="utf-8") as f:
                f.write(REPORT)
            open(os.path.join(folder, "b.cu.o"), "wb").close()
            done = subprocess.run(command + [folder], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn("a.cu.o has no ptxas report", done.stdout)
            self.assertIn("h3rt::demo for sm_90a is not listed", done.stdout)


if __name__ == "__main__":
    unittest.main()
