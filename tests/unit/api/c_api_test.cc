#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "gspmd/gspmd.h"

namespace {

using testing::HasSubstr;

constexpr char kProgram[] = R"(HloModule m, num_partitions=4
ENTRY e {
  x = f32[8,400] parameter(0), sharding={devices=[1,4]<=[4]}
  w = f32[400,6] parameter(1)
  ROOT d = f32[8,6] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})";

// The message of an error, which is freed; empty where there is none.
std::string taken(gspmd_error* error, int* code = nullptr) {
  std::string message = gspmd_error_message(error);
  if (code != nullptr) *code = gspmd_error_code(error);
  gspmd_error_free(error);
  return message;
}

std::string taken(char* buffer) {
  std::string text = buffer;
  gspmd_buffer_free(buffer);
  return text;
}

class CApi : public testing::Test {
 protected:
  ~CApi() override {
    gspmd_program_free(program_);
    gspmd_options_free(options_);
  }
  void partition(const std::string& text) {
    ASSERT_EQ(taken(gspmd_partition(text.data(), text.size(), options_, &program_)), "");
  }
  gspmd_options* options_ = gspmd_options_new();
  gspmd_program* program_ = nullptr;
};

TEST_F(CApi, PartitionsAndReports) {
  partition(kProgram);
  char* out = nullptr;
  size_t size = 0;
  ASSERT_EQ(taken(gspmd_program_write(program_, "hlo", &out, &size)), "");
  std::string text = taken(out);
  EXPECT_EQ(text.size(), size);
  EXPECT_THAT(text, HasSubstr("all-reduce("));
  ASSERT_EQ(taken(gspmd_program_write(program_, "mlir-global", &out, nullptr)), "");
  EXPECT_THAT(taken(out), HasSubstr("sdy.manual_computation"));
  ASSERT_EQ(taken(gspmd_program_stats(program_, &out)), "");
  EXPECT_THAT(taken(out), HasSubstr("\"all-reduce\":{\"count\":1"));
  ASSERT_EQ(taken(gspmd_program_explain(program_, &out)), "");
  EXPECT_THAT(taken(out), HasSubstr("\"reasons\":\"partial-reduction\""));
  ASSERT_EQ(taken(gspmd_program_shardings(program_, &out)), "");
  EXPECT_EQ(taken(out), R"({"parameters":["{devices=[1,4]<=[4]}","{replicated}"],)"
                        R"("results":["{replicated}"],"num_partitions":4})");
}

TEST_F(CApi, CompletionMayChooseWhereAllowed) {
  ASSERT_EQ(taken(gspmd_options_set(options_, "free_parameters", "1")), "");
  partition(kProgram);
  char* out = nullptr;
  ASSERT_EQ(taken(gspmd_program_shardings(program_, &out)), "");
  EXPECT_THAT(taken(out), HasSubstr("{devices=[4,1]<=[4]}"));
}

TEST_F(CApi, BadInputIsAnErrorWithItsPlace) {
  ASSERT_EQ(taken(gspmd_options_set(options_, "name", "model.hlo")), "");
  std::string text = "HloModule m\nENTRY e { ROOT a = f32[2] nothing() }";
  int code = 0;
  std::string message =
      taken(gspmd_partition(text.data(), text.size(), options_, &program_), &code);
  EXPECT_THAT(message, HasSubstr("model.hlo:2:"));
  EXPECT_EQ(code, 1);
  EXPECT_EQ(program_, nullptr);
}

TEST_F(CApi, WrongUseIsAnError) {
  EXPECT_THAT(taken(gspmd_options_set(options_, "colour", "red")), HasSubstr("no option"));
  EXPECT_THAT(taken(gspmd_options_set(options_, "num_partitions", "-3")), HasSubstr("above 0"));
  EXPECT_THAT(taken(gspmd_options_set(options_, "free_results", "yes")), HasSubstr("0 or 1"));
  EXPECT_THAT(taken(gspmd_options_set(options_, "format", "onnx")), HasSubstr("no format"));
  EXPECT_THAT(taken(gspmd_options_set(nullptr, "name", "x")), HasSubstr("options is NULL"));
  EXPECT_THAT(taken(gspmd_partition(nullptr, 3, nullptr, &program_)), HasSubstr("data is NULL"));
  EXPECT_NE(taken(gspmd_partition("", 0, nullptr, &program_)), "");
  char* out = nullptr;
  EXPECT_THAT(taken(gspmd_program_stats(nullptr, &out)), HasSubstr("program is NULL"));
  gspmd_program_free(nullptr);
  gspmd_options_free(nullptr);
  gspmd_buffer_free(nullptr);
  gspmd_error_free(nullptr);
}

}  // namespace
