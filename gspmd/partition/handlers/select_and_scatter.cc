// select-and-scatter over split windows is gathered: its windows overlap in the result.
#include "gspmd/partition/handler.h"

namespace gspmd {

extern const Handler kSelectAndScatterHandler = {};

}  // namespace gspmd
