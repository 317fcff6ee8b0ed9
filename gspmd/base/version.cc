#include "gspmd/base/version.h"

namespace gspmd {

std::string_view version() { return "0.1.0"; }

}  // namespace gspmd
