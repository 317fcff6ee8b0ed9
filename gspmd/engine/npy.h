#pragma once

#include <string>

#include "gspmd/engine/buffer.h"

namespace gspmd {

// NumPy's array files. Types that NumPy has not (bf16, f8, s4, ...) are written as unsigned
// integers of their bits and read back by the type that is wanted.
void write_npy(const std::string& path, const Buffer& b);
// Throws Error where the file is none, or its type or sizes are not the wanted ones.
Buffer read_npy(const std::string& path, ElementType type, absl::Span<const int64_t> dims);

}  // namespace gspmd
