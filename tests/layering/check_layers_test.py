"""tools/check_layers finds what is planted, and nothing in clean files."""
import os
import subprocess
import sys
import tempfile
import unittest

import tool

check = tool.load("check_layers")


def rules(path, text):
    return sorted({f.rule for f in check.check_file(path, text)})


class Includes(unittest.TestCase):
    def one(self, path, include):
        text = ("#pragma once\n" if path.endswith(("h", "cuh")) else "") + include + "\n"
        return rules(path, text)

    def test_downward_includes_are_clean(self):
        for path, include in [
            ("h3rt/num/a.cc", '#include "h3rt/base/status.h"'),
            ("h3rt/num/a.cc", '#include "h3rt/num/a.h"'),
            ("h3rt/kernels/norm/norm.cc", '#include "h3rt/kernels/norm/ref/norm_ref.h"'),
            ("h3rt/model/dit/dit.cc", '#include "h3rt/kernels/linear/linear.h"'),
            ("h3rt/parity/a.cc", '#include "h3rt/runtime/session.h"'),
            ("apps/h3rt/main.cc", '#include "h3rt/parity/parity.h"'),
            ("apps/h3rt/main.cc", '#include "apps/h3rt/command.h"'),
            ("tests/golden/a_test.cc", '#include "h3rt/parity/parity.h"'),
            ("bench/a.cc", '#include "apps/h3rt/command.h"'),
            ("h3rt/device/a.cu", '#include "h3rt/device/math/mix.cuh"'),
            ("h3rt/device/a.cuh", '#include "h3rt/device/math/mix.cuh"'),
            ("h3rt/cuda/a.cc", "#include <cuda_runtime_api.h>"),
            ("h3rt/base/a.cc", "#include <vector>"),
            ("h3rt/base/a.cc", '#include "absl/status/status.h"'),
            ("h3rt/base/a.cc", "#include <nlohmann/json.hpp>"),
            ("h3rt/base/a_test.cc", '#include "tests/support/temporary.h"'),
        ]:
            self.assertEqual(self.one(path, include), [], f"{path}: {include}")

    def test_upward_includes_are_found(self):
        for path, include in [
            ("h3rt/base/a.cc", '#include "h3rt/num/bf16.h"'),
            ("h3rt/base/a.h", '#include "h3rt/tensor/view.h"'),
            ("h3rt/io/a.cc", '#include "h3rt/kernels/linear/linear.h"'),
            ("h3rt/kernels/linear/a.cc", '#include "h3rt/model/dit/dit.h"'),
            ("h3rt/runtime/a.cc", '#include "h3rt/parity/parity.h"'),
            ("h3rt/parity/a.cc", '#include "apps/h3rt/command.h"'),
            ("h3rt/num/a_test.cc", '#include "h3rt/tensor/view.h"'),
            ("h3rt/num/a.cc", '#include "tests/support/temporary.h"'),
            ("h3rt/num/a.cc", '  #  include   "h3rt/tensor/view.h"'),
        ]:
            self.assertEqual(self.one(path, include), ["floor"], f"{path}: {include}")

    def test_sideways_includes_are_found(self):
        for path, include in [
            ("h3rt/io/a.cc", '#include "h3rt/media/mp4.h"'),
            ("h3rt/cuda/a.cc", '#include "h3rt/device/probe/launch.h"'),
            ("h3rt/kernels/linear/a.cc", '#include "h3rt/kernels/norm/norm.h"'),
            ("h3rt/model/dit/a.cc", '#include "h3rt/model/packing/packing.h"'),
            ("h3rt/runtime/a.cc", '#include "h3rt/lab/registry.h"'),
            ("apps/h3rt/a.cc", '#include "apps/other/a.h"'),
        ]:
            self.assertEqual(self.one(path, include), ["floor"], f"{path}: {include}")

    def test_device_headers_stay_in_device_code(self):
        for path in ("h3rt/device/a.cc", "h3rt/device/a.h", "tests/device/a_test.cc"):
            self.assertIn("cuh", self.one(path, '#include "h3rt/device/math/mix.cuh"'), path)
        for path, include in [
            ("h3rt/base/a.cc", "#include <cuda_runtime_api.h>"),
            ("h3rt/cuda/a.h", "#include <cuda.h>"),
            ("h3rt/kernels/linear/a.cc", "#include <cuda_fp16.h>"),
        ]:
            self.assertEqual(self.one(path, include), ["cuda"], f"{path}: {include}")

    def test_other_forms_are_found(self):
        for include in ('#include "status.h"', '#include "../base/status.h"',
                        '#include "base/status.h"', "#include <h3rt/base/status.h>",
                        '#include "h3rt/base/../num/bf16.h"', '#include "h3rt/unknown/a.h"',
                        '#include "h3rt/status.h"', '#include "h3rt/kernels/shared.h"'):
            self.assertEqual(self.one("h3rt/num/a.cc", include), ["form"], include)

    def test_comments_are_not_includes(self):
        text = ('// #include "h3rt/parity/parity.h"\n'
                '/* one\n#include "h3rt/parity/parity.h"\n*/\n'
                '#include "h3rt/base/a.h"  // not "h3rt/parity/parity.h"\n')
        self.assertEqual(rules("h3rt/num/a.cc", text), [])

    def test_the_line_is_named(self):
        found = check.check_file("h3rt/num/a.cc", '// a\n\n#include "h3rt/tensor/view.h"\n')
        self.assertEqual([f.line for f in found], [3])

    def test_a_probe_of_the_compiler_stands_alone(self):
        self.assertEqual(rules("research/probes/wgmma.cu", "#include <cstdint>\n"), [])
        for path in ("research/probes/a.cc", "research/a.cu", "research/probes/x/a.cu"):
            self.assertEqual(rules(path, ""), ["module"], path)
        for path, include in [
            ("research/probes/a.cu", "h3rt/device/math/mix.cuh"),
            ("research/probes/a.cu", "research/probes/b.cu"),
            ("h3rt/device/probe/a.cu", "research/probes/b.cu"),
        ]:
            self.assertEqual(rules(path, f'#include "{include}"\n'), ["form"], include)

    def test_a_source_outside_the_modules_is_found(self):
        for path in ("h3rt/extra/a.cc", "h3rt/a.cc", "h3rt/kernels/a.cc", "src/a.cc", "a.cc"):
            self.assertEqual(rules(path, ""), ["module"], path)


class Cmake(unittest.TestCase):
    def test_a_library_states_the_floor_of_its_folder(self):
        text = "h3rt_library(NAME h3rt_io FLOOR 3\n  SRCS a.cc)\n"
        self.assertEqual(rules("h3rt/io/CMakeLists.txt", text), [])
        self.assertEqual(rules("h3rt/num/CMakeLists.txt", text), ["cmake"])
        self.assertEqual(rules("h3rt/kernels/linear/CMakeLists.txt", text), ["cmake"])
        self.assertEqual(rules("h3rt/extra/CMakeLists.txt", text), ["cmake"])


class Pragma(unittest.TestCase):
    def test_a_header_begins_with_it(self):
        self.assertEqual(rules("h3rt/base/a.h", "// Why.\n\n#pragma once\n"), [])
        self.assertEqual(rules("h3rt/base/a.h", "/* Why.\n */\n#pragma once\nint a;\n"), [])
        for text in ("", "int a;\n", "// #pragma once\n", "int a;\n#pragma once\n",
                     "#ifndef A\n#define A\n#endif\n"):
            self.assertEqual(rules("h3rt/base/a.h", text), ["pragma"], text)
        self.assertEqual(rules("h3rt/device/a.cuh", "int a;\n"), ["pragma"])


class Sizes(unittest.TestCase):
    def test_files_have_limits(self):
        for path, limit in [("h3rt/base/a.cc", 600), ("h3rt/device/a.cu", 600),
                            ("h3rt/device/probe/kernel.cuh", 900), ("h3rt/base/a_test.cc", 800),
                            ("tests/golden/a.cc", 800), ("h3rt/kernels/norm/README.md", 200)]:
            head = "#pragma once\n" if path.endswith("cuh") else "//\n"
            self.assertEqual(rules(path, head + "\n" * (limit - 1)), [], path)
            self.assertEqual(rules(path, head + "\n" * limit), ["size"], path)
        self.assertEqual(rules("README.md", "\n" * 1000), [])

    def lengths(self, text):
        return [n for _, n in check.function_lengths(text)]

    def test_functions_are_measured_from_signature_to_brace(self):
        self.assertEqual(check.function_lengths("\n\nint F(int a,\n      int b) {\n  return a;\n}\n"),
                         [(3, 4)])

    def test_functions_are_found_in_every_scope(self):
        text = ("namespace h3rt {\nnamespace {\n\nstruct A {\n  int b = {};\n"
                "  A() : b{1} {\n  }\n  int Get() const {\n    return b;\n  }\n};\n\n"
                "template <typename T>\nenum class E { kA };\n"
                "constexpr int kTable[] = {1, 2};\n"
                "const std::array<int, 2> kOther = {{F({1}), 2}};\n"
                "auto Make() -> std::vector<int> {\n  return [] {\n    return 1;\n  }();\n}\n"
                'extern "C" {\nint cInit(unsigned flags) {\n  return 0;\n}\n}\n'
                "}  // namespace\n}  // namespace h3rt\n")
        self.assertEqual(self.lengths(text), [2, 3, 5, 3])

    def test_text_and_comments_do_not_confuse_the_braces(self):
        text = ('int F() {\n  // }\n  const char* a = "}";\n  char b = \'}\';\n'
                '  const char* c = R"(\n}\n)";\n  int d = 1\'000\'000;\n  /* } */\n'
                '  const char* e = "\\"}";\n  return b;\n}\n')
        self.assertEqual(self.lengths(text), [12])

    def test_a_long_function_is_found(self):
        body = "namespace h3rt {\nvoid F() {\n" + "  G();\n" * 78 + "}\n}\n"
        self.assertEqual(rules("h3rt/base/a.cc", body), [])
        body = "namespace h3rt {\nvoid F() {\n" + "  G();\n" * 79 + "}\n}\n"
        self.assertEqual(rules("h3rt/base/a.cc", body), ["size"])
        body = "TEST(A, B) {\n" + "  G();\n" * 79 + "}\n"
        self.assertEqual(rules("h3rt/base/a_test.cc", body), ["size"])


class Words(unittest.TestCase):
    def test_paths_of_a_machine_and_registries_are_found(self):
        for word in ("/wo" + "rk/main", "/ho" + "me/someone", "/tm" + "p/b-x", "py" + "pi.org",
                     "see https://deb.de" + "bian.org/x", "/ro" + "ot/.cache"):
            self.assertEqual(rules("README.md", f"text {word} text\n"), ["word"], word)
            self.assertEqual(rules("tools/setup.sh", f"cd {word}\n"), ["word"], word)

    def test_harmless_words_are_not(self):
        for word in ("model/wo" + "rk/x", "frame" + "wo" + "rk", "https://example.org/ho" + "me/x",
                     "/tmp/h3rt.XXXX", "build/wo" + "rk"):
            self.assertEqual(rules("README.md", f"text {word} text\n"), [], word)


class Bytes(unittest.TestCase):
    def test_budgets_hold_for_folders_and_the_whole(self):
        mb = 1000 * 1000
        self.assertEqual(check.check_bytes({"tests/data/a": 25 * mb, "models/h3-tiny/b": 12 * mb,
                                            "benchmarks/c": 7 * mb, "h3rt/d": 5 * mb}), [])
        for path, size in [("tests/data/a", 26), ("models/h3-tiny/b", 14), ("benchmarks/c", 8),
                           ("h3rt/d", 6), ("models/other/d", 6)]:
            found = check.check_bytes({path: size * mb})
            self.assertEqual([f.rule for f in found], ["bytes"], path)


class Tree(unittest.TestCase):
    def run_tool(self, root):
        return subprocess.run([sys.executable, os.path.join(tool.TOOLS, "check_layers"), "--root",
                               root], capture_output=True, text=True, check=False)

    def test_a_planted_tree_fails_and_a_clean_one_passes(self):
        with tempfile.TemporaryDirectory() as root:
            done = self.run_tool(root)
            self.assertEqual(done.returncode, 10, done.stdout)
            os.makedirs(os.path.join(root, "h3rt", "base"))
            path = os.path.join(root, "h3rt", "base", "a.cc")
            with open(path, "w", encoding="utf-8") as f:
                f.write("#include <vector>\n")
            done = self.run_tool(root)
            self.assertEqual(done.returncode, 0, done.stdout)
            with open(path, "w", encoding="utf-8") as f:
                f.write('#include "h3rt/num/bf16.h"\n')
            done = self.run_tool(root)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn("h3rt/base/a.cc:1: [floor]", done.stdout)
            self.assertIn("1 sources, 1 includes, 1 findings", done.stdout)


if __name__ == "__main__":
    unittest.main()
