#include <troupe/train/communicator.hpp>

#include <stdexcept>

#include <fmt/format.h>

#include "collective/arguments.hpp"

namespace troupe::train {
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
  check_all_reduce(data, count, type, op);
  do_all_reduce(data, count, type, op);
}

void Communicator::broadcast(void* data, std::size_t count, DataType type, int root) {
  check_broadcast(*this, data, count, type, root);
  do_broadcast(data, count, type, root);
}

void Communicator::all_gather(const void* in, void* out, std::size_t count, DataType type) {
  check_all_gather(*this, in, out, count, type);
  do_all_gather(in, out, count, type);
}

void Communicator::all_gather(const void* in, void* out, std::span<const std::size_t> counts,
                              DataType type) {
  check_all_gather(*this, in, out, counts, type);
  do_all_gather_parts(in, out, counts, type);
}

void Communicator::reduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op,
                          int root) {
  check_reduce(*this, in, out, count, type, op, root);
  do_reduce(in, out, count, type, op, root);
}

void Communicator::gather(const void* in, void* out, std::size_t count, DataType type, int root) {
  check_gather(*this, in, out, count, type, root);
  do_gather(in, out, count, type, root);
}

void Communicator::scatter(const void* in, void* out, std::size_t count, DataType type, int root) {
  check_scatter(*this, in, out, count, type, root);
  do_scatter(in, out, count, type, root);
}

void Communicator::reduce_scatter(const void* in, void* out, std::size_t count, DataType type,
                                  ReduceOp op) {
  check_reduce_scatter(*this, in, out, count, type, op);
  do_reduce_scatter(in, out, count, type, op);
}

void Communicator::all_to_all(const void* in, void* out, std::size_t count, DataType type) {
  check_all_to_all(*this, in, out, count, type);
  do_all_to_all(in, out, count, type);
}

void Communicator::send(const void* data, std::size_t count, DataType type, int to) {
  check_buffer(data, count, type, 1, "send");
  check_peer(to, *this, "send");
  do_send(data, count, type, to);
}

void Communicator::recv(void* data, std::size_t count, DataType type, int from) {
  check_buffer(data, count, type, 1, "recv");
  check_peer(from, *this, "recv");
  do_recv(data, count, type, from);
}

std::unique_ptr<Communicator> Communicator::split(int color, int key) {
  if (color < 0 && color != kNoColor) {
    throw std::invalid_argument(fmt::format(
        "split: color {} is negative; kNoColor ({}) is for ranks without a new communicator", color,
        kNoColor));
  }
  return do_split(color, key);
}

std::shared_ptr<void> Communicator::allocate(std::size_t) { return nullptr; }

}  // namespace troupe::train
