#include "gspmd/engine/npy.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>

#include "gspmd/base/error.h"

namespace gspmd {
namespace {

std::string descr(ElementType t) {
  switch (t) {
    case ElementType::kPred:
      return "|b1";
    case ElementType::kF16:
      return "<f2";
    case ElementType::kF32:
      return "<f4";
    case ElementType::kF64:
      return "<f8";
    case ElementType::kC64:
      return "<c8";
    case ElementType::kC128:
      return "<c16";
    default:
      break;
  }
  char kind = class_of(t) == TypeClass::kSigned ? 'i' : 'u';
  int bytes = storage_bytes(t);
  return fmt::format("{}{}{}", bytes == 1 ? '|' : '<', kind, bytes);
}

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw Error(fmt::format("{}: {}", path, what), "arrays are saved by numpy.save");
}

// The text between `key` and the end of its value in the header's dictionary.
std::string_view entry(std::string_view header, std::string_view key, char open, char close) {
  size_t at = header.find(key);
  if (at == std::string_view::npos) return {};
  size_t begin = header.find(open, at + key.size());
  size_t end = begin == std::string_view::npos ? begin : header.find(close, begin + 1);
  return end == std::string_view::npos ? std::string_view()
                                       : header.substr(begin + 1, end - begin - 1);
}

DimVector read_shape(std::string_view text) {
  DimVector dims;
  const char *p = text.data(), *end = p + text.size();
  while (p < end) {
    int64_t d = 0;
    auto [next, error] = std::from_chars(p, end, d);
    if (error == std::errc()) dims.push_back(d);
    p = next == p ? p + 1 : next;
  }
  return dims;
}

}  // namespace

void write_npy(const std::string& path, const Buffer& b) {
  std::string shape;
  for (int64_t d : b.dims()) shape += fmt::format("{},", d);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                   descr(b.type()), shape);
  size_t total = (10 + header.size() + 1 + 63) / 64 * 64;
  header.append(total - 10 - header.size() - 1, ' ');
  header += '\n';
  std::ofstream out(path, std::ios::binary);
  uint16_t length = static_cast<uint16_t>(header.size());
  out.write("\x93NUMPY\x01\x00", 8);
  out.write(reinterpret_cast<const char*>(&length), 2);
  out << header;
  out.write(reinterpret_cast<const char*>(b.raw()), b.bytes());
  if (!out) refuse(path, "can not be written");
}

Buffer read_npy(const std::string& path, ElementType type, absl::Span<const int64_t> dims) {
  std::ifstream in(path, std::ios::binary);
  if (!in) refuse(path, "can not be read");
  std::string data((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (data.size() < 12 || std::memcmp(data.data(), "\x93NUMPY", 6) != 0)
    refuse(path, "is no .npy file");
  bool wide = data[6] >= 2;
  uint32_t length = 0;
  std::memcpy(&length, data.data() + 8, wide ? 4 : 2);
  size_t start = (wide ? 12 : 10) + length;
  if (start > data.size()) refuse(path, "is cut short");
  std::string_view header = std::string_view(data).substr(wide ? 12 : 10, length);
  if (header.find("'fortran_order': False") == std::string_view::npos)
    refuse(path, "is in column order");
  std::string_view kind = entry(header, "'descr':", '\'', '\'');
  if (kind.substr(1) != descr(type).substr(1))
    refuse(path, fmt::format("holds {}, {} ({}) is needed", kind, name_of(type), descr(type)));
  DimVector shape = read_shape(entry(header, "'shape':", '(', ')'));
  if (absl::MakeConstSpan(shape) != dims)
    refuse(path, fmt::format("has sizes ({}), ({}) are needed", fmt::join(shape, ","),
                             fmt::join(dims, ",")));
  Buffer b(type, dims);
  if (data.size() - start < static_cast<size_t>(b.bytes())) refuse(path, "is cut short");
  std::memcpy(b.mutable_raw(), data.data() + start, static_cast<size_t>(b.bytes()));
  return b;
}

}  // namespace gspmd
