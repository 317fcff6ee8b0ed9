#include "gspmd/ir/shape.h"

#include <fmt/format.h>

#include <iterator>

#include "gspmd/base/check.h"

namespace gspmd {

bool Shape::is_dynamic() const {
  if (data_->dynamic != 0) return true;
  for (Shape e : elements()) {
    if (e.is_dynamic()) return true;
  }
  return false;
}

int64_t Shape::bytes_of_elements() const {
  int64_t n = 0;
  for (Shape e : elements()) n += e.bytes();
  return n;
}

namespace {

void append_int(std::string* out, int64_t n) {
  fmt::format_int text(n);
  out->append(text.data(), text.size());
}

void append_layout(std::string* out, Shape s) {
  const Layout* layout = s.layout();
  if (s.rank() == 0 && (layout == nullptr || layout->rest.empty())) return;
  out->push_back('{');
  for (int i = 0; i < s.rank(); ++i) {
    if (i > 0) out->push_back(',');
    append_int(out, layout ? layout->minor_to_major[i] : s.rank() - 1 - i);
  }
  if (layout && !layout->rest.empty()) out->append(":").append(layout->rest);
  out->push_back('}');
}

}  // namespace

void append_shape(std::string* out, Shape s, bool with_layout) {
  if (s.is_tuple()) {
    out->push_back('(');
    for (size_t i = 0; i < s.elements().size(); ++i) {
      if (i > 0) out->append(", ");
      if (i > 0 && i % 5 == 0) fmt::format_to(std::back_inserter(*out), "/*index={}*/", i);
      append_shape(out, s.element(i), with_layout);
    }
    out->push_back(')');
    return;
  }
  out->append(name_of(s.type())).push_back('[');
  for (int d = 0; d < s.rank(); ++d) {
    if (d > 0) out->push_back(',');
    if (s.is_dynamic(d)) out->append(s.dim(d) < 0 ? "?" : "<=");
    if (s.dim(d) >= 0) append_int(out, s.dim(d));
  }
  out->push_back(']');
  if (with_layout && s.is_array()) append_layout(out, s);
}

std::string to_string(Shape s, bool with_layout) {
  std::string out;
  append_shape(&out, s, with_layout);
  return out;
}

}  // namespace gspmd
