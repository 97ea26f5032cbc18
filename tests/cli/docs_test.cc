// The documents are the help texts.
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace h3rt::cli_test {
namespace {

TEST(Docs, EveryCommandsPageIsItsHelpText) {
  for (const std::string command :
       {"generate", "inspect", "parity", "doctor", "make-model", "explain"}) {
    const std::string page = ReadAll(H3RT_SOURCE_DIR "/docs/" + command + ".md");
    const ProgramRun help = RunProgram({command, "--help"});
    ASSERT_EQ(help.exit_code, 0);
    ASSERT_FALSE(help.out.empty());
    EXPECT_NE(page.find("```\n" + help.out + "```\n"), std::string::npos)
        << "docs/" << command << ".md is old: run tools/make_docs.sh build/h3rt";
  }
}

TEST(Docs, TheLaboratorysPageIsItsHelpTexts) {
  const std::string page = ReadAll(H3RT_SOURCE_DIR "/docs/lab.md");
  const std::vector<std::vector<std::string>> commands = {{"lab"},
                                                          {"lab", "validate"},
                                                          {"lab", "status"},
                                                          {"lab", "show"},
                                                          {"lab", "plan"},
                                                          {"lab", "run"},
                                                          {"lab", "gate"},
                                                          {"lab", "add"},
                                                          {"lab", "set"},
                                                          {"lab", "retry"},
                                                          {"lab", "import"},
                                                          {"lab", "log", "verify"},
                                                          {"lab", "log", "show"},
                                                          {"lab", "verify"},
                                                          {"lab", "log", "append"},
                                                          {"lab", "log", "anchor"},
                                                          {"lab", "log", "repair"},
                                                          {"lab", "report"},
                                                          {"lab", "diff"},
                                                          {"lab", "attention-golden"},
                                                          {"lab", "schema"}};
  for (std::vector<std::string> command : commands) {
    command.emplace_back("--help");
    const ProgramRun help = RunProgram(command);
    ASSERT_EQ(help.exit_code, 0) << help.err;
    ASSERT_FALSE(help.out.empty());
    EXPECT_NE(page.find("```\n" + help.out + "```\n"), std::string::npos)
        << command[1] << ": docs/lab.md is old: run tools/make_docs.sh build/h3rt";
  }
}

TEST(Docs, EveryExplanationIsOnItsPage) {
  const std::string page = ReadAll(H3RT_SOURCE_DIR "/docs/explain.md");
  const ProgramRun help = RunProgram({"explain", "attention", "--help"});
  ASSERT_EQ(help.exit_code, 0) << help.err;
  EXPECT_NE(page.find("```\n" + help.out + "```\n"), std::string::npos);
}

TEST(Docs, TheReadmeNamesEveryPage) {
  const std::string readme = ReadAll(H3RT_SOURCE_DIR "/README.md");
  for (const std::string command :
       {"generate", "inspect", "parity", "doctor", "make-model", "explain", "lab"}) {
    EXPECT_NE(readme.find("docs/" + command + ".md"), std::string::npos) << command;
  }
}

}  // namespace
}  // namespace h3rt::cli_test
