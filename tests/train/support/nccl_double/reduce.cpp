#include "support/nccl_double/reduce.hpp"

#include <algorithm>
#include <cstdint>

namespace nccl_double {
namespace {

/// `Wide`: what is computed in.
template <class T, class Wide>
Wide combine(std::span<const void* const> in, std::size_t i, ncclRedOp_t op) {
  const auto each = [&](std::size_t rank) {
    return static_cast<Wide>(static_cast<const T*>(in[rank])[i]);
  };
  auto result = each(0);
  for (std::size_t rank = 1; rank < in.size(); ++rank) {
    const auto value = each(rank);
    switch (op) {
      case ncclProd:
        result = static_cast<Wide>(result * value);
        break;
      case ncclMax:
        result = std::max(result, value);
        break;
      case ncclMin:
        result = std::min(result, value);
        break;
      default:
        result = static_cast<Wide>(result + value);
    }
  }
  return op == ncclAvg ? static_cast<Wide>(result / static_cast<Wide>(in.size())) : result;
}

template <class T, class Wide>
void reduce_as(std::span<const void* const> in, void* out, std::size_t count, ncclRedOp_t op) {
  for (std::size_t i = 0; i < count; ++i)
    static_cast<T*>(out)[i] = static_cast<T>(combine<T, Wide>(in, i, op));
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclFloat64:
      return 8;
    default:
      return 0;
  }
}

void reduce(std::span<const void* const> in, void* out, std::size_t count, ncclDataType_t type,
            ncclRedOp_t op) {
  switch (type) {
    case ncclInt8:  // unsigned where it can overflow, which wraps
      return op == ncclSum || op == ncclProd ? reduce_as<std::uint8_t, unsigned>(in, out, count, op)
                                             : reduce_as<std::int8_t, int>(in, out, count, op);
    case ncclUint8:
      return reduce_as<std::uint8_t, unsigned>(in, out, count, op);
    case ncclFloat16:
      return reduce_as<__half, float>(in, out, count, op);
    case ncclBfloat16:
      return reduce_as<__nv_bfloat16, float>(in, out, count, op);
    case ncclInt32:
      return op == ncclSum || op == ncclProd
                 ? reduce_as<std::uint32_t, std::uint32_t>(in, out, count, op)
                 : reduce_as<std::int32_t, std::int64_t>(in, out, count, op);
    case ncclInt64:
      return op == ncclSum || op == ncclProd
                 ? reduce_as<std::uint64_t, std::uint64_t>(in, out, count, op)
                 : reduce_as<std::int64_t, std::int64_t>(in, out, count, op);
    case ncclFloat32:
      return reduce_as<float, float>(in, out, count, op);
    case ncclFloat64:
      return reduce_as<double, double>(in, out, count, op);
    default:
      return;
  }
}

}  // namespace nccl_double
