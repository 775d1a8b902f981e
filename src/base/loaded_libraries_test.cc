#include "base/loaded_libraries.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "base/libraries.h"

namespace xsched {
namespace {

constexpr char kBeginning[] = "libresolv.so";

int own_data;

// A folder with a copy of a library under another file name.
class LoadedLibraries : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/xsched-libraries.XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    library_ = dlopen("libresolv.so.2", RTLD_LAZY);
    ASSERT_NE(library_, nullptr) << dlerror();
    LoadedLibrary found;
    ASSERT_TRUE(FindLibraryAt(dlsym(library_, "ns_sprintrr"), &found));
    path_ = found.path;
    renamed_ = folder_ + "/renamed.so";
    std::filesystem::copy_file(std::filesystem::canonical(path_), renamed_);
  }
  void TearDown() override {
    if (library_ != nullptr) dlclose(library_);
    std::filesystem::remove_all(folder_);
  }

  std::string folder_, path_, renamed_;
  void* library_ = nullptr;
};

TEST_F(LoadedLibraries, are_found_by_their_file_name_and_by_their_soname) {
  Array<LoadedLibrary> found;
  ASSERT_TRUE(FindLoadedLibraries(kBeginning, &found));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].path, path_);
  const uint64_t loads = LoadCount();

  void* renamed = dlopen(renamed_.c_str(), RTLD_LAZY | RTLD_LOCAL);
  ASSERT_NE(renamed, nullptr) << dlerror();
  EXPECT_GT(LoadCount(), loads);
  Array<LoadedLibrary> both;
  ASSERT_TRUE(FindLoadedLibraries(kBeginning, &both));
  ASSERT_EQ(both.size(), 2u) << "by its SONAME as well";
  EXPECT_EQ(both[1].path, renamed_) << "in the order of loading";
  LoadedLibrary at{};
  ASSERT_TRUE(FindLibraryAt(dlsym(renamed, "ns_sprintrr"), &at));
  EXPECT_EQ(at.base, both[1].base);
  dlclose(renamed);
}

TEST_F(LoadedLibraries, with_another_name_are_not_found) {
  Array<LoadedLibrary> found;
  ASSERT_TRUE(FindLoadedLibraries("libresolve", &found));
  EXPECT_EQ(found.size(), 0u);
  int local;
  LoadedLibrary library;
  EXPECT_FALSE(FindLibraryAt(&local, &library)) << "the stack is no library's";
  EXPECT_TRUE(FindLibraryAt(&own_data, &library)) << "the program";
}

TEST_F(LoadedLibraries, can_be_opened_by_their_path_and_others_cannot) {
  EXPECT_EQ(OpenLibrary(path_.c_str()).handle(), library_);
  EXPECT_EQ(OpenLibrary(renamed_.c_str()).handle(), nullptr) << "it is not loaded";
}

TEST(FileName, is_what_follows_the_last_slash) {
  EXPECT_STREQ(FileName("/usr/lib/libc.so.6"), "libc.so.6");
  EXPECT_STREQ(FileName("libc.so.6"), "libc.so.6");
  EXPECT_STREQ(FileName("/"), "");
}

}  // namespace
}  // namespace xsched
