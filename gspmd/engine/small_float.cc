#include "gspmd/engine/small_float.h"

#include <cmath>
#include <memory>

#include "gspmd/base/check.h"
#include "gspmd/ir/float_format.h"

namespace gspmd {
namespace {

std::unique_ptr<SmallFloatTable> make_table(ElementType type) {
  auto table = std::make_unique<SmallFloatTable>();
  const FloatFormat format = format_of(type);
  const int codes = 1 << bits_of(type);
  for (int code = 0; code < 256; ++code) {
    table->values[code] =
        static_cast<float>(float_value(type, static_cast<uint64_t>(code % codes)));
  }
  const auto minus_zero = static_cast<uint8_t>(codes / 2);
  for (uint32_t upper = 0; upper < 1 << 16; ++upper) {
    const float x = std::bit_cast<float>(upper << 16);
    const bool no_nan = format.nan == FloatFormat::Nan::kNone;
    table->codes[upper] = no_nan && std::isnan(x)
                              ? minus_zero
                              : static_cast<uint8_t>(float_bits(type, static_cast<double>(x)));
  }
  return table;
}

template <ElementType kType>
const SmallFloatTable& table_of() {
  static const std::unique_ptr<const SmallFloatTable> table = make_table(kType);
  return *table;
}

}  // namespace

const SmallFloatTable& small_float_table(ElementType type) {
  switch (type) {
    case ElementType::kF4E2M1FN:
      return table_of<ElementType::kF4E2M1FN>();
    case ElementType::kF6E2M3FN:
      return table_of<ElementType::kF6E2M3FN>();
    case ElementType::kF6E3M2FN:
      return table_of<ElementType::kF6E3M2FN>();
    case ElementType::kF8E3M4:
      return table_of<ElementType::kF8E3M4>();
    case ElementType::kF8E4M3:
      return table_of<ElementType::kF8E4M3>();
    case ElementType::kF8E4M3B11FNUZ:
      return table_of<ElementType::kF8E4M3B11FNUZ>();
    case ElementType::kF8E4M3FN:
      return table_of<ElementType::kF8E4M3FN>();
    case ElementType::kF8E4M3FNUZ:
      return table_of<ElementType::kF8E4M3FNUZ>();
    case ElementType::kF8E5M2:
      return table_of<ElementType::kF8E5M2>();
    case ElementType::kF8E5M2FNUZ:
      return table_of<ElementType::kF8E5M2FNUZ>();
    case ElementType::kF8E8M0FNU:
      return table_of<ElementType::kF8E8M0FNU>();
    default:
      break;
  }
  GSPMD_CHECK(false, "no table for " + std::string(name_of(type)));
}

}  // namespace gspmd
