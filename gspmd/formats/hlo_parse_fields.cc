#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "gspmd/formats/hlo_parser.h"
#include "gspmd/ir/frontend_attributes.h"

namespace gspmd {
namespace {

template <typename T>
T& as(void* member) {
  return *static_cast<T*>(member);
}

}  // namespace

void HloParser::field(const Field& f, void* attrs) { field_value(f, f.member(attrs)); }

void HloParser::field_value(const Field& f, void* member) {
  switch (f.kind) {
    case FieldKind::kInt:
      as<int64_t>(member) = lex_.integer();
      return;
    case FieldKind::kBool:
      as<bool>(member) = lex_.boolean();
      return;
    case FieldKind::kDouble: {
      size_t at = lex_.position();
      std::string_view n = lex_.number();
      auto [end, fault] = std::from_chars(n.data(), n.data() + n.size(), as<double>(member));
      if (fault != std::errc() || end != n.data() + n.size()) lex_.fail(at, "no number");
      return;
    }
    case FieldKind::kDims:
      as<Dims>(member) = dims();
      return;
    case FieldKind::kSlices:
      return slices(static_cast<SliceAttrs*>(member));
    case FieldKind::kPadding:
      return padding(static_cast<PadAttrs*>(member));
    case FieldKind::kWindow:
      as<Window>(member) = window();
      return;
    case FieldKind::kConvDims:
      as<ConvDims>(member) = conv_dims();
      return;
    case FieldKind::kConvDimsPointer:
      as<const ConvDims*>(member) = context_.arena().make<ConvDims>(conv_dims());
      return;
    case FieldKind::kEnum:
      as<uint8_t>(member) = enum_value(f);
      return;
    case FieldKind::kRaw:
      as<std::string_view>(member) = context_.name(lex_.raw_value());
      return;
    case FieldKind::kString:
      as<std::string_view>(member) = text();
      return;
    case FieldKind::kDeviceGroups:
      as<const DeviceGroups*>(member) = device_groups();
      return;
    case FieldKind::kPairs:
      return pairs(static_cast<PermuteAttrs*>(member));
    case FieldKind::kShape:
      as<Shape>(member) = shape();
      return;
  }
}

Dims HloParser::dims() {
  DimVector d;
  lex_.list('{', '}', [&] { d.push_back(lex_.integer()); });
  return context_.dims(d);
}

// {[0:4], [1:9:2]}
void HloParser::slices(SliceAttrs* a) {
  DimVector starts, limits, strides;
  lex_.list('{', '}', [&] {
    lex_.take('[');
    starts.push_back(lex_.integer());
    lex_.take(':');
    limits.push_back(lex_.integer());
    strides.push_back(lex_.try_take(':') ? lex_.integer() : 1);
    lex_.take(']');
  });
  *a = {context_.dims(starts), context_.dims(limits), context_.dims(strides)};
}

namespace {

// Splits off the integer that `text` starts with.
bool take_integer(std::string_view* text, int64_t* value) {
  auto [end, fault] = std::from_chars(text->data(), text->data() + text->size(), *value);
  if (fault != std::errc()) return false;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return true;
}

bool take_char(std::string_view* text, char c) {
  if (!text->starts_with(c)) return false;
  text->remove_prefix(1);
  return true;
}

// One dimension of `0_1x-1_2x0_0_1`: low, high and, where written, interior.
bool take_padding(std::string_view* text, std::array<int64_t, 3>* p) {
  (*p)[2] = 0;
  if (!take_integer(text, &(*p)[0]) || !take_char(text, '_') || !take_integer(text, &(*p)[1]))
    return false;
  return !take_char(text, '_') || take_integer(text, &(*p)[2]);
}

}  // namespace

void HloParser::padding(PadAttrs* a) {
  size_t at = lex_.position();
  std::string_view text = lex_.pattern();
  DimVector low, high, interior;
  do {
    std::array<int64_t, 3> p;
    if (!take_padding(&text, &p)) {
      lex_.fail(at, "no padding",
                "write low_high or low_high_interior, joined by x: 0_1x2_2x0_0_1");
    }
    low.push_back(p[0]);
    high.push_back(p[1]);
    interior.push_back(p[2]);
  } while (take_char(&text, 'x'));
  if (!text.empty()) lex_.fail(at, fmt::format("'{}' behind the padding", text));
  *a = {context_.dims(low), context_.dims(high), context_.dims(interior)};
}

// {size=3x3 stride=2x2 pad=0_1x1_0 lhs_dilate=1x2 rhs_dilate=2x1 rhs_reversal=0x1}
Window HloParser::window() {
  absl::InlinedVector<WindowDim, 4> window;
  bool sized = false;
  lex_.take('{');
  while (!lex_.try_take('}')) {
    size_t at = lex_.position();
    std::string_view key = lex_.word();
    if (key.empty()) lex_.fail_here("'}'");
    lex_.take('=');
    std::string_view text = lex_.pattern();
    size_t d = 0;
    do {
      if (d >= window.size() && !sized) window.resize(d + 1);
      std::array<int64_t, 3> v{};
      bool good = d < window.size() &&
                  (key == "pad" ? take_padding(&text, &v) : take_integer(&text, &v[0]));
      if (!good) {
        lex_.fail(at,
                  fmt::format("no {} of a window{}", key,
                              sized ? fmt::format(" of {} dimensions", window.size()) : ""),
                  "one number for each dimension, joined by x: size=3x3 pad=0_1x1_0");
      }
      WindowDim& w = window[d++];
      if (key == "size")
        w.size = v[0];
      else if (key == "stride")
        w.stride = v[0];
      else if (key == "pad")
        w.pad_low = v[0], w.pad_high = v[1];
      else if (key == "lhs_dilate")
        w.base_dilation = v[0];
      else if (key == "rhs_dilate")
        w.window_dilation = v[0];
      else if (key == "rhs_reversal")
        w.reversal = v[0] != 0;
      else
        lex_.fail(at, fmt::format("'{}' is no part of a window", key));
    } while (take_char(&text, 'x'));
    if (!text.empty() || d != window.size()) {
      lex_.fail(at, fmt::format("{} of {} dimensions in a window of {}", key, d, window.size()),
                "all parts of a window have the same number of dimensions");
    }
    sized = true;
    lex_.try_take(',');
  }
  return context_.arena().copy(absl::MakeConstSpan(window));
}

namespace {

// Letters of one tensor of `b01f_01io->b01f`: positions of the two named ones and of the digits.
bool read_labels(std::string_view text, char first, char second, int64_t* first_at,
                 int64_t* second_at, DimVector* spatial) {
  *first_at = *second_at = -1;
  for (size_t k = 0; k < text.size(); ++k) {
    char c = text[k];
    int64_t at = static_cast<int64_t>(k);
    int64_t* to = c == first ? first_at : c == second ? second_at : nullptr;
    if (c >= '0' && c <= '9') {
      size_t s = static_cast<size_t>(c - '0');
      if (s >= spatial->size()) spatial->resize(s + 1, -1);
      to = &(*spatial)[s];
    }
    if (c == '?') continue;
    if (to == nullptr || *to >= 0) return false;
    *to = at;
  }
  bool gap = std::find(spatial->begin(), spatial->end(), -1) != spatial->end();
  return *first_at >= 0 && *second_at >= 0 && !gap;
}

}  // namespace

ConvDims HloParser::conv_dims() {
  size_t at = lex_.position();
  std::string_view text = lex_.pattern();
  size_t bar = text.find('_'), arrow = text.find("->");
  ConvDims c;
  DimVector input, kernel, output;
  bool good = bar != std::string_view::npos && arrow != std::string_view::npos && bar < arrow;
  good =
      good && read_labels(text.substr(0, bar), 'b', 'f', &c.input_batch, &c.input_feature, &input);
  good = good && read_labels(text.substr(bar + 1, arrow - bar - 1), 'i', 'o', &c.kernel_input,
                             &c.kernel_output, &kernel);
  good = good &&
         read_labels(text.substr(arrow + 2), 'b', 'f', &c.output_batch, &c.output_feature, &output);
  good = good && input.size() == kernel.size() && input.size() == output.size();
  if (!good) {
    lex_.fail(
        at, fmt::format("'{}' are no dimension labels", text),
        "write input_kernel->output with b, f, i, o and spatial numbers, as in b01f_01io->b01f");
  }
  c.input_spatial = context_.dims(input);
  c.kernel_spatial = context_.dims(kernel);
  c.output_spatial = context_.dims(output);
  return c;
}

uint8_t HloParser::enum_value(const Field& f) {
  size_t at = lex_.position();
  std::string_view w = lex_.word();
  for (size_t k = 0; k < f.names.size(); ++k) {
    if (f.names[k] == w && !w.empty()) return static_cast<uint8_t>(k);
  }
  std::string all;
  for (std::string_view n : f.names) {
    if (!n.empty()) all += fmt::format("{}{}", all.empty() ? "" : ", ", n);
  }
  lex_.seek(at);
  lex_.fail_here(fmt::format("a {}", f.name), "one of " + all);
}

const DeviceGroups* HloParser::device_groups() {
  DeviceGroups groups = spelled([&] {
    size_t position = lex_.position();
    DeviceGroups read = parse_replica_groups(lex_.text(), &position);
    lex_.seek(position);
    return read;
  });
  return context_.groups(groups);
}

// {{0,1},{1,0}}
void HloParser::pairs(PermuteAttrs* a) {
  std::vector<std::pair<int64_t, int64_t>> list;
  lex_.list('{', '}', [&] {
    lex_.take('{');
    int64_t from = lex_.integer();
    lex_.take(',');
    list.emplace_back(from, lex_.integer());
    lex_.take('}');
  });
  a->pairs = context_.arena().copy(absl::MakeConstSpan(list));
}

// A string in quotes, unescaped, that lives as long as the context.
std::string_view HloParser::text() {
  std::string_view raw = lex_.raw_string();
  raw = raw.substr(1, raw.size() - 2);
  if (raw.find('\\') == std::string_view::npos) return context_.arena().text(raw);
  return context_.arena().text(unescape(raw));
}

}  // namespace gspmd
