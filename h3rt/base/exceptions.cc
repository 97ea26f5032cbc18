#include "h3rt/base/exceptions.h"

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

namespace h3rt {

absl::Status StatusOfException(std::string_view where) {
  const std::string place(where);
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return ResourceExhausted({.what = "out of memory", .where = place});
  } catch (const std::length_error& error) {
    return ResourceExhausted({.what = "a size is too large", .got = error.what(), .where = place});
  } catch (const std::exception& error) {
    return Internal({.what = "unexpected exception", .got = error.what(), .where = place});
  } catch (...) {
    return Internal({.what = "unexpected exception", .where = place});
  }
}

}  // namespace h3rt
