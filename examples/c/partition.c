/* Partitions a program of any format and prints what it became:
 *     partition PROGRAM [NUM_DEVICES] > per_device.hlo
 * The collectives go to standard error, as JSON. */
#include <gspmd/gspmd.h>
#include <stdio.h>
#include <stdlib.h>

static char* read_file(const char* path, size_t* size) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) return NULL;
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  char* data = malloc(*size + 1);
  if (data != NULL && fread(data, 1, *size, file) != *size) *size = 0;
  fclose(file);
  return data;
}

/* Prints and frees an error; the command's exit code. */
static int report(gspmd_error* error) {
  int code = gspmd_error_code(error);
  if (error != NULL) fprintf(stderr, "%s\n", gspmd_error_message(error));
  gspmd_error_free(error);
  return code;
}

static int print(const gspmd_program* program) {
  char *text = NULL, *explanations = NULL;
  int code = report(gspmd_program_write(program, "hlo", &text, NULL));
  if (code == 0) code = report(gspmd_program_explain(program, &explanations));
  if (code == 0) {
    fputs(text, stdout);
    fprintf(stderr, "%s\n", explanations);
  }
  gspmd_buffer_free(text);
  gspmd_buffer_free(explanations);
  return code;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: %s PROGRAM [NUM_DEVICES]\n", argv[0]);
    return 2;
  }
  size_t size = 0;
  char* data = read_file(argv[1], &size);
  if (data == NULL) {
    perror(argv[1]);
    return 1;
  }
  gspmd_options* options = gspmd_options_new();
  gspmd_program* program = NULL;
  int code = report(gspmd_options_set(options, "name", argv[1]));
  if (code == 0 && argc > 2) code = report(gspmd_options_set(options, "num_partitions", argv[2]));
  if (code == 0) code = report(gspmd_partition(data, size, options, &program));
  if (code == 0) code = print(program);
  gspmd_program_free(program);
  gspmd_options_free(options);
  free(data);
  return code;
}
