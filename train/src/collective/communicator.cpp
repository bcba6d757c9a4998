#include <troupe/train/communicator.hpp>

#include <limits>
#include <stdexcept>

#include <fmt/format.h>

namespace troupe::train {
namespace {

void check_buffer(const void* data, std::size_t count, DataType type, int ranks, const char* call) {
  if (data == nullptr && count > 0) {
    throw std::invalid_argument(fmt::format("{}: a null buffer for {} elements of {}", call, count, name_of(type)));
  }
  const auto most = static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max()) / size_of(type);
  if (count > most / static_cast<std::size_t>(ranks)) {
    throw std::invalid_argument(
        fmt::format("{}: {} elements of {} are more than can be addressed", call, count, name_of(type)));
  }
}

void check_op(DataType type, ReduceOp op, const char* call) {
  if (op == ReduceOp::Average && !is_floating(type)) {
    throw std::invalid_argument(
        fmt::format("{}: an average of {} would be rounded; sum, and divide as you need it", call, name_of(type)));
  }
}

}  // namespace

std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::Int8:
    case DataType::UInt8:
      return 1;
    case DataType::Float16:
    case DataType::BFloat16:
      return 2;
    case DataType::Int32:
    case DataType::Float32:
      return 4;
    case DataType::Int64:
    case DataType::Float64:
      return 8;
  }
  throw std::invalid_argument(fmt::format("{} is no DataType", static_cast<int>(type)));
}

const char* name_of(DataType type) {
  switch (type) {
    case DataType::Int8:
      return "int8";
    case DataType::UInt8:
      return "uint8";
    case DataType::Int32:
      return "int32";
    case DataType::Int64:
      return "int64";
    case DataType::Float16:
      return "float16";
    case DataType::BFloat16:
      return "bfloat16";
    case DataType::Float32:
      return "float32";
    case DataType::Float64:
      return "float64";
  }
  return "unknown";
}

const char* name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
      return "sum";
    case ReduceOp::Average:
      return "average";
    case ReduceOp::Min:
      return "min";
    case ReduceOp::Max:
      return "max";
    case ReduceOp::Product:
      return "product";
  }
  return "unknown";
}

bool is_floating(DataType type) { return type >= DataType::Float16; }

void Communicator::all_reduce(void* data, std::size_t count, DataType type, ReduceOp op) {
  check_buffer(data, count, type, 1, "all_reduce");
  check_op(type, op, "all_reduce");
  do_all_reduce(data, count, type, op);
}

void Communicator::broadcast(void* data, std::size_t count, DataType type, int root) {
  check_buffer(data, count, type, 1, "broadcast");
  if (root < 0 || root >= size()) {
    throw std::invalid_argument(fmt::format("broadcast: root {} is none of the ranks 0 to {}", root, size() - 1));
  }
  do_broadcast(data, count, type, root);
}

void Communicator::all_gather(const void* in, void* out, std::size_t count, DataType type) {
  check_buffer(in, count, type, size(), "all_gather");
  check_buffer(out, count, type, size(), "all_gather");
  do_all_gather(in, out, count, type);
}

void Communicator::reduce_scatter(const void* in, void* out, std::size_t count, DataType type, ReduceOp op) {
  check_buffer(in, count, type, size(), "reduce_scatter");
  check_buffer(out, count, type, size(), "reduce_scatter");
  check_op(type, op, "reduce_scatter");
  do_reduce_scatter(in, out, count, type, op);
}

std::shared_ptr<void> Communicator::allocate(std::size_t) { return nullptr; }

}  // namespace troupe::train
