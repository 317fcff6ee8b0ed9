/* The C interface: a program in a buffer of any format in, the per-device program out.
 *
 *   gspmd_options* options = gspmd_options_new();
 *   gspmd_options_set(options, "num_partitions", "8");
 *   gspmd_program* program = NULL;
 *   gspmd_error* error = gspmd_partition(bytes, size, options, &program);
 *   if (error != NULL) { fputs(gspmd_error_message(error), stderr); ... }
 *
 * No function throws or ends the process; none keeps a pointer to what it was given. Objects are
 * freed by their own functions, which take NULL as well. Texts end in a zero byte and live as long
 * as their object. Different objects may be used from different threads. */
#ifndef GSPMD_H_
#define GSPMD_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gspmd_options gspmd_options;
typedef struct gspmd_program gspmd_program;
typedef struct gspmd_error gspmd_error;

/* "MAJOR.MINOR.PATCH" */
const char* gspmd_version(void);

gspmd_options* gspmd_options_new(void);
void gspmd_options_free(gspmd_options* options);
/* Sets one option from its text; a later value replaces an earlier one. Names and values:
 *   format            of the input: hlo, pb or mlir (default: told from the content)
 *   num_partitions    number of devices (default: as the program says)
 *   name              of the input in messages (default: <program>)
 *   free_parameters   0 or 1: completion may choose what has no sharding (default: as the program
 *   free_results      0 or 1   says)
 * Null, or an error to be freed. */
gspmd_error* gspmd_options_set(gspmd_options* options, const char* name, const char* value);

/* Completes and partitions the program in `size` bytes at `data`. options may be NULL. Null and
 * *result set, or an error to be freed and *result NULL. */
gspmd_error* gspmd_partition(const void* data, size_t size, const gspmd_options* options,
                             gspmd_program** result);
void gspmd_program_free(gspmd_program* program);

/* Writes the per-device program as "hlo", "pb" or "mlir", or, as "mlir-global", StableHLO with the
 * interface of the original and the per-device program inside. The buffer has *size bytes and a
 * zero byte behind them; free it by gspmd_buffer_free. */
gspmd_error* gspmd_program_write(const gspmd_program* program, const char* format, char** buffer,
                                 size_t* size);
/* One JSON object, as `gspmd stats` writes; one JSON list, as `gspmd explain --json`; one JSON
 * object
 * {"parameters": [...], "results": [...], "num_partitions": N} of HLO shardings. */
gspmd_error* gspmd_program_stats(const gspmd_program* program, char** json);
gspmd_error* gspmd_program_explain(const gspmd_program* program, char** json);
gspmd_error* gspmd_program_shardings(const gspmd_program* program, char** json);
void gspmd_buffer_free(char* buffer);

/* What is wrong, with place, source line and hint, as the command prints it. */
const char* gspmd_error_message(const gspmd_error* error);
/* 1: the input or the program is wrong; 3: a fault in this library. As the command's exit codes. */
int gspmd_error_code(const gspmd_error* error);
void gspmd_error_free(gspmd_error* error);

#ifdef __cplusplus
}
#endif

#endif /* GSPMD_H_ */
