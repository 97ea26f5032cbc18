"""tools/setup.sh and the lists of files, where nothing is as on the developer's machine."""
import os
import shutil
import subprocess
import tempfile
import unittest

import tool

PROGRAMS = {
    "dpkg-query": "exit 1",  # nothing is installed
    "id": "echo 1000",  # not root
    "sudo": 'exec "$@"',
    "apt-get": 'echo "$*" >>"$CALLS"',
}


def tree(root, names):
    os.makedirs(os.path.join(root, "tools"))
    for name in names:
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write("#include <vector>\n")


class Setup(unittest.TestCase):
    def test_without_root_one_command_is_printed_that_covers_everything(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, body in PROGRAMS.items():
                path = os.path.join(folder, name)
                with open(path, "w", encoding="utf-8") as f:
                    f.write(f"#!/bin/bash\n{body}\n")
                os.chmod(path, 0o755)
            calls = os.path.join(folder, "calls")
            env = dict(os.environ, PATH=folder + ":" + os.environ["PATH"], CALLS=calls)
            done = subprocess.run([os.path.join(tool.TOOLS, "setup.sh"), "build"], env=env,
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1, done.stderr)
            command = done.stderr.splitlines()[-1]
            self.assertIn("sudo sh -c ", command)
            subprocess.run(["bash", "-c", command], env=env, check=True)
            with open(calls, encoding="utf-8") as f:
                lines = f.read().splitlines()
            self.assertEqual(lines[0], "update")
            self.assertEqual(len(lines), 2)
            words = lines[1].split()
            self.assertEqual(words[0], "install")
            for package in ["g++", "ffmpeg", "clang-tidy-14"]:  # of both sections
                self.assertIn(package, words)


class ListSources(unittest.TestCase):
    NAMES = ["h3rt/a.cc", "h3rt/b c.h", "h3rt/d.cu", "h3rt/text.md", "build/no.cc", "out/no.h"]
    WANTED = {"h3rt/a.cc", "h3rt/b c.h", "h3rt/d.cu"}

    def listed(self, root, env=None):
        shutil.copy(os.path.join(tool.TOOLS, "list_sources"), os.path.join(root, "tools"))
        done = subprocess.run([os.path.join(root, "tools", "list_sources")], capture_output=True,
                              check=True, env=env)
        return set(done.stdout.decode().split("\0")) - {""}

    def test_an_unpacked_archive_is_walked(self):
        with tempfile.TemporaryDirectory() as root:
            tree(root, self.NAMES)
            self.assertEqual(self.listed(root), self.WANTED)

    def test_a_clone_of_another_owner_is_read(self):
        with tempfile.TemporaryDirectory() as root:
            tree(root, self.NAMES + ["ignored/no.cc"])
            # What git ignores tells its list from that of a walk.
            with open(os.path.join(root, ".gitignore"), "w", encoding="utf-8") as f:
                f.write("/build\n/out\n/ignored\n")
            subprocess.run(["git", "init", "-q", root], check=True)
            # git's own switch for its tests: takes every repository for another owner's.
            env = dict(os.environ, GIT_TEST_ASSUME_DIFFERENT_OWNER="1")
            refused = subprocess.run(["git", "-C", root, "ls-files"], env=env, check=False,
                                     capture_output=True, text=True)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("dubious ownership", refused.stderr)
            self.assertEqual(self.listed(root, env), self.WANTED)
            os.environ["GIT_TEST_ASSUME_DIFFERENT_OWNER"] = "1"
            try:
                names = tool.load("check_layers").files_of(root)
            finally:
                del os.environ["GIT_TEST_ASSUME_DIFFERENT_OWNER"]
            self.assertIn("h3rt/a.cc", names)
            self.assertNotIn("ignored/no.cc", names)


if __name__ == "__main__":
    unittest.main()
