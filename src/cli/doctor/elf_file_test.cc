#include "cli/doctor/elf_file.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "cli/doctor/examine_program.h"
#include "server/testing/server_process.h"

namespace xsched::cli {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Files : public ::testing::Test {
 protected:
  // An executable file with this content.
  std::string Make(const std::string& name, const std::string& content) {
    std::string path = folder_.path() + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    chmod(path.c_str(), 0755);
    return path;
  }
  static std::string OwnProgram() { return std::filesystem::read_symlink("/proc/self/exe"); }
  static std::string Content(const std::string& path) {
    std::string content(std::filesystem::file_size(path), '\0');
    std::ifstream(path, std::ios::binary).read(content.data(), static_cast<std::streamsize>(content.size()));
    return content;
  }
  static Report Examine(const std::string& program, std::span<const ExaminedPlatform> platforms = {}) {
    Report report;
    ExamineProgram(report, program, platforms);
    return report;
  }

  server::testing::TempFolder folder_;
};

TEST_F(Files, a_program_names_its_loader_and_its_libraries) {
  std::optional<ElfFile> elf = ReadElf(OwnProgram());
  ASSERT_TRUE(elf);
  EXPECT_TRUE(elf->is_64_bit);
  EXPECT_TRUE(elf->has_loader);
  EXPECT_THAT(elf->needed, Contains(StartsWith("libstdc++.so")));
}

TEST_F(Files, what_is_no_program_is_none) {
  EXPECT_FALSE(ReadElf("/nowhere"));
  EXPECT_FALSE(ReadElf(Make("empty", "")));
  EXPECT_FALSE(ReadElf(Make("text", "just some text, longer than an ELF header's first bytes")));
}

TEST_F(Files, a_program_cut_off_anywhere_is_read_without_harm) {
  std::string whole = Content(OwnProgram()).substr(0, 4096);
  for (size_t size : {4u, 15u, 16u, 40u, 64u, 100u, 300u, 1000u, 4096u}) {
    ReadElf(Make("cut", whole.substr(0, size)));
  }
}

TEST_F(Files, a_program_with_any_byte_of_its_headers_changed_is_read_without_harm) {
  std::string whole = Content(OwnProgram()).substr(0, 4096);
  for (size_t at = 4; at < 700; at += 3) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(0xff);
    ReadElf(Make("damaged", damaged));
  }
}

TEST_F(Files, the_interpreter_of_a_script_is_found_through_env) {
  EXPECT_EQ(InterpreterOf(Make("a", "#!/bin/sh\n")), "/bin/sh");
  EXPECT_EQ(InterpreterOf(Make("b", "#! /bin/sh -e\n")), "/bin/sh");
  EXPECT_EQ(InterpreterOf(Make("c", "#!/usr/bin/env python3\n")), "python3");
  EXPECT_EQ(InterpreterOf(Make("d", "#!/usr/bin/env -S A=1 python3 -u\n")), "python3");
  EXPECT_EQ(InterpreterOf(Make("e", "#!\n")), std::nullopt);
  EXPECT_EQ(InterpreterOf(Make("f", "echo\n")), std::nullopt);
}

TEST_F(Files, a_script_is_judged_by_the_program_that_runs_it) {
  Report report = Examine(Make("script", "#!" + OwnProgram() + "\n"));
  EXPECT_TRUE(report.scheduled()) << report.obstacle();
  EXPECT_THAT(report.Text(), HasSubstr("is a script"));
}

TEST_F(Files, a_script_that_interprets_itself_has_an_end) {
  std::string path = folder_.path() + "/loop";
  EXPECT_FALSE(Examine(Make("loop", "#!" + path + "\n")).scheduled());
}

TEST_F(Files, a_statically_linked_program_cannot_be_scheduled) {
  // The program interpreter's entry is taken out: to the kernel and to us, it is static then.
  std::string content = Content(OwnProgram());
  Elf64_Ehdr header;
  std::memcpy(&header, content.data(), sizeof header);
  auto* entry = reinterpret_cast<Elf64_Phdr*>(content.data() + header.e_phoff);
  Elf64_Phdr* end = entry + header.e_phnum;
  entry = std::find_if(entry, end, [](const Elf64_Phdr& each) { return each.p_type == PT_INTERP; });
  ASSERT_NE(entry, end);
  entry->p_type = PT_NULL;
  Report report = Examine(Make("static", content));
  EXPECT_FALSE(report.scheduled());
  EXPECT_THAT(report.obstacle(), HasSubstr("statically linked"));
}

TEST_F(Files, a_32_bit_program_cannot_be_scheduled) {
  std::string content = Content(OwnProgram());
  content[4] = 1;
  EXPECT_THAT(Examine(Make("small", content)).obstacle(), HasSubstr("32-bit"));
}

TEST_F(Files, a_program_that_is_not_there_or_not_executable_cannot_be_scheduled) {
  EXPECT_FALSE(Examine("no-such-program-anywhere").scheduled());
  std::string path = Make("plain", "text");
  EXPECT_THAT(Examine(path).obstacle(), HasSubstr("neither a program nor a script"));
  chmod(path.c_str(), 0644);
  EXPECT_FALSE(Examine(path).scheduled());
}

TEST_F(Files, a_program_whose_platform_does_not_work_here_is_not_scheduled) {
  // As if a runtime were linked into it, which opens the driver.
  std::string program = Make("program", Content("/bin/sh") + std::string(3 << 20, '.') + "libcuda.so.1");
  const ExaminedPlatform opencl_works[] = {{"OpenCL", ""}, {"CUDA", "there is no GPU"}};
  Report report = Examine(program, opencl_works);
  EXPECT_THAT(report.obstacle(), HasSubstr("CUDA: there is no GPU"));
  EXPECT_THAT(report.Text(), HasSubstr("names CUDA's driver"));
  const ExaminedPlatform cuda_works[] = {{"OpenCL", "there is no device"}, {"CUDA", ""}};
  EXPECT_TRUE(Examine(program, cuda_works).scheduled());
}

TEST_F(Files, a_loader_beside_the_program_is_judged_by_whether_it_knows_layers) {
  std::string program = Make("program", Content(OwnProgram()));
  Make("libOpenCL.so.1", "…");
  EXPECT_THAT(Examine(program).Text(), HasSubstr("takes no layers"));
  Make("libOpenCL.so.1", "… OPENCL_LAYERS …");
  EXPECT_THAT(Examine(program).Text(), HasSubstr("which takes layers"));
}

}  // namespace
}  // namespace xsched::cli
