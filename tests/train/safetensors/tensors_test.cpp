// Tensors of all kinds in files, whose judge is Python's package `safetensors`.
#include <csignal>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <torch/types.h>
#include <troupe/errors.hpp>
#include <troupe/train/safetensors.hpp>

#include "built.hpp"
#include "eventually.hpp"
#include "python.hpp"
#include "safetensors/support.hpp"
#include "small_disk.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace fs = std::filesystem;
namespace safetensors = troupe::train::safetensors;
using troupe::test::python;
using troupe::test::SmallDisk;
using troupe::testing::bytes_of_file;
using troupe::testing::has_safetensors;
using troupe::testing::same_bits;
using troupe::testing::Scratch;
using troupe::testing::Tensors;
using troupe::testing::write_bytes;

namespace {

const std::vector<torch::ScalarType> kTypes{torch::kBool,
                                            torch::kByte,
                                            torch::kChar,
                                            torch::kFloat8_e5m2,
                                            torch::kFloat8_e4m3fn,
                                            torch::kFloat8_e8m0fnu,
                                            torch::kFloat8_e4m3fnuz,
                                            torch::kFloat8_e5m2fnuz,
                                            torch::kShort,
                                            torch::kUInt16,
                                            torch::kHalf,
                                            torch::kBFloat16,
                                            torch::kInt,
                                            torch::kUInt32,
                                            torch::kFloat,
                                            torch::kComplexFloat,
                                            torch::kDouble,
                                            torch::kLong,
                                            torch::kUInt64};

/// Of each type a scalar, an empty one and one of three dimensions; a transposed, a repeated and a
/// conjugated view.
Tensors tensors_of_all_kinds() {
  torch::manual_seed(0);
  Tensors tensors;
  for (const auto type : kTypes) {
    const std::string name = c10::toString(type);
    tensors[name] = torch::randint(0, 2, {2, 3, 5}).to(type);
    tensors[name + ".empty"] = torch::empty({0, 7}, type);
    tensors[name + ".scalar"] = torch::ones({}).to(type);
  }
  tensors["a transposed one"] = torch::randn({3, 4}).t();
  tensors["a repeated one"] = torch::randn({1, 4}).expand({3, 4});
  tensors["a conjugated \"é\"\n"] = torch::randn({5}, torch::kComplexFloat).conj();
  tensors["one with a gradient"] = torch::randn({5}, torch::requires_grad());
  return tensors;
}

/// A process that writes a file again and again, until it is killed: each time with another value.
class Writer {
 public:
  explicit Writer(const fs::path& file) : process_(::fork()) {
    if (process_ != 0) return;
    try {
      for (int value = 0;; ++value) {
        safetensors::save({{"a", torch::full({50'000}, value)}, {"b", torch::full({1}, value)}},
                          file);
      }
    } catch (...) {
      ::_exit(1);
    }
  }
  ~Writer() { kill(); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(std::exchange(process_, 0), nullptr, 0);
  }

 private:
  pid_t process_;
};

/// What is in a folder, besides the given file.
int others_in(const fs::path& folder, const std::string& file) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(folder)) count += entry.path().filename() != file;
  return count;
}

}  // namespace

TEST_CASE("tensors of every type and shape come back from a file", "[train][safetensors]") {
  const Scratch scratch;
  const auto file = scratch.path() / "all.safetensors";
  const auto saved = tensors_of_all_kinds();
  safetensors::save(saved, file, {{"author", "näme"}, {"", "empty key"}});
  const auto loaded = safetensors::load(file);
  CHECK(loaded.metadata == safetensors::Metadata{{"author", "näme"}, {"", "empty key"}});
  REQUIRE(loaded.tensors.size() == saved.size());
  for (const auto& [name, tensor] : saved) {
    CAPTURE(name);
    const auto& other = loaded.tensors.at(name);
    CHECK(same_bits(tensor, other));
    CHECK(other.is_contiguous());
    CHECK_FALSE(other.requires_grad());
  }
  CHECK(others_in(scratch.path(), "all.safetensors") == 0);
}

TEST_CASE("Python writes the same bytes for the same tensors", "[train][safetensors]") {
  if (!has_safetensors()) return;
  const Scratch scratch;
  safetensors::save(tensors_of_all_kinds(), scratch.path() / "all", {{"format", "pt"}});
  safetensors::save(Tensors{}, scratch.path() / "none");
  safetensors::save({{"a", torch::arange(3)}}, scratch.path() / "one");
  CHECK(python(scratch.path(), R"(
import numpy
from safetensors import TensorSpec, deserialize, safe_open, serialize
dtypes = {"BOOL": "bool", "U8": "uint8", "I8": "int8", "F8_E5M2": "float8_e5m2", "F8_E4M3": "float8_e4m3fn", "F8_E8M0": "float8_e8m0fnu",
          "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz", "I16": "int16", "U16": "uint16",
          "F16": "float16", "BF16": "bfloat16", "I32": "int32", "U32": "uint32", "F32": "float32", "C64": "complex64", "F64": "float64",
          "I64": "int64", "U64": "uint64"}
for name in ["all", "none", "one"]:
    ours = open(name, "rb").read()
    with safe_open(name, "np") as opened:
        words = opened.metadata()
    held = {key: (tensor, numpy.frombuffer(bytes(tensor["data"]), numpy.uint8)) for key, tensor in deserialize(ours)}
    specs = {key: TensorSpec(dtype=dtypes[tensor["dtype"]], shape=tensor["shape"], data_ptr=data.ctypes.data, data_len=data.nbytes) for key, (tensor, data) in held.items()}
    print(name, len(specs), serialize(specs, words) == ours)
)",
               TROUPE_READERS_PYTHON) == "all 61 True\nnone 0 True\none 1 True\n");
}

TEST_CASE("Python's arrays are read, and it reads ours", "[train][safetensors]") {
  if (!has_safetensors()) return;
  const Scratch scratch;
  safetensors::save({{"ours", torch::arange(6, torch::kFloat).reshape({2, 3}).t()},
                     {"whole", torch::tensor({-1, 5}, torch::kLong)}},
                    scratch.path() / "ours");
  CHECK(python(scratch.path(), R"(
import numpy
from safetensors.numpy import load_file, save_file
print({name: array.tolist() for name, array in sorted(load_file("ours").items())})
save_file({"theirs": numpy.array([[0.5, -2.0]], numpy.float64), "half": numpy.float16([1.5]), "flags": numpy.array([True, False])},
          "theirs", {"by": "Python"})
)",
               TROUPE_READERS_PYTHON) ==
        "{'ours': [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]], 'whole': [-1, 5]}\n");
  const auto theirs = safetensors::load(scratch.path() / "theirs");
  CHECK(theirs.metadata == safetensors::Metadata{{"by", "Python"}});
  REQUIRE(theirs.tensors.size() == 3);
  CHECK(same_bits(theirs.tensors.at("theirs"), torch::tensor({{0.5, -2.0}}, torch::kDouble)));
  CHECK(same_bits(theirs.tensors.at("half"), torch::tensor({1.5}, torch::kHalf)));
  CHECK(same_bits(theirs.tensors.at("flags"), torch::tensor({true, false})));
}

TEST_CASE(
    "a tensor that the format has no place for is refused by its name, and nothing is written",
    "[train][safetensors]") {
  const Scratch scratch;
  const auto refused = [&](const torch::Tensor& tensor) -> std::string {
    try {
      safetensors::save({{"good", torch::ones(2)}, {"odd", tensor}}, scratch.path() / "file");
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "nothing was refused";
  };
  const std::string begin = "safetensors cannot have the tensor 'odd': ";
  CHECK(refused({}) == begin + "it is undefined");
  CHECK(refused(torch::eye(2).to_sparse()) == begin + "its layout is Sparse; use its to_dense()");
  CHECK(refused(torch::empty({2}, torch::kMeta)) ==
        begin + "it is on the device meta, and has no values");
  CHECK(refused(torch::quantize_per_tensor(torch::ones(2), 1, 0, torch::kQInt8)) ==
        begin + "it is quantized; use its dequantize()");
  CHECK(refused(torch::ones({2}, torch::kComplexDouble)) ==
        begin + "the format lacks the type ComplexDouble");
  CHECK(fs::is_empty(scratch.path()));
  CHECK_THROWS_AS(safetensors::save({{"\xff", torch::ones(2)}}, scratch.path() / "file"),
                  std::invalid_argument);
  CHECK(fs::is_empty(scratch.path()));
}

TEST_CASE("a file that is not whole is refused by its name", "[train][safetensors]") {
  const Scratch scratch;
  const auto file = scratch.path() / "file";
  safetensors::save({{"a", torch::arange(3)}, {"b", torch::ones(2)}}, file);
  const auto whole = bytes_of_file(file);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_bytes(file, whole.substr(0, size));
    CAPTURE(size);
    CHECK_THROWS_WITH(safetensors::load(file), Catch::Contains("cannot load " + file.string()) &&
                                                   Catch::Contains("cut off"));
  }
  write_bytes(file, whole + "x");
  CHECK_THROWS_WITH(safetensors::load(file), Catch::Contains("longer than it should be"));
  write_bytes(file, "{\"a\": 1}");
  CHECK_THROWS_WITH(safetensors::load(file), Catch::Contains("no file of safetensors"));
}

TEST_CASE("what is no file is refused, and waits for nothing", "[train][safetensors]") {
  const Scratch scratch;
  const auto pipe = scratch.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(safetensors::load(pipe), Catch::Contains(pipe.string() + ": it is no file"));
  CHECK_THROWS_WITH(safetensors::load(scratch.path() / "none"),
                    Catch::Contains("none: No such file or directory"));
  safetensors::save({{"a", torch::ones(2)}}, scratch.path() / "b.safetensors");
  CHECK_THROWS_WITH(safetensors::load(scratch.path()),
                    Catch::Contains("the folder has neither model.safetensors nor "
                                    "model.safetensors.index.json; name a file of it, as "
                                    "b.safetensors"));
  for (const fs::path& target : {pipe, scratch.path()}) {
    CHECK_THROWS_WITH(safetensors::save({{"a", torch::ones(2)}}, target),
                      Catch::Contains("what is there is no file"));
    CHECK_FALSE(fs::is_regular_file(target));
  }
  CHECK_THROWS_WITH(safetensors::save({{"a", torch::ones(2)}}, scratch.path() / "no/file"),
                    Catch::Contains("No such file or directory"));
}

TEST_CASE("a full disk leaves the file that was there", "[train][safetensors]") {
  const Scratch scratch;
  const SmallDisk disk(scratch.path());
  if (!disk.is_there()) return;
  const auto file = scratch.path() / "file";
  safetensors::save({{"a", torch::ones(100)}}, file);
  const auto before = bytes_of_file(file);
  CHECK_THROWS_WITH(safetensors::save({{"a", torch::ones(100'000)}}, file),
                    Catch::Contains("cannot write " + file.string()) &&
                        Catch::Contains("No space left on device"));
  CHECK(bytes_of_file(file) == before);
  CHECK(others_in(scratch.path(), "file") == 0);
}

TEST_CASE("a file is written behind its symbolic link and keeps its permissions",
          "[train][safetensors]") {
  const Scratch scratch;
  const auto file = scratch.path() / "file";
  safetensors::save({{"a", torch::ones(1)}}, file);
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("file", scratch.path() / "link");
  safetensors::save({{"a", torch::full({1}, 7)}}, scratch.path() / "link");
  CHECK(fs::is_symlink(scratch.path() / "link"));
  CHECK(safetensors::load(file).tensors.at("a").item<double>() == 7);
  CHECK(fs::status(file).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("a link that leads nowhere yet leads to the file, and one in a circle is refused",
          "[train][safetensors]") {
  const Scratch scratch;
  fs::create_directory(scratch.path() / "folder");
  fs::create_symlink("folder/file", scratch.path() / "link");
  safetensors::save({{"a", torch::ones(1)}}, scratch.path() / "link");
  CHECK(fs::is_symlink(scratch.path() / "link"));
  CHECK(fs::is_regular_file(scratch.path() / "folder/file"));
  fs::create_symlink("circle", scratch.path() / "circle");
  CHECK_THROWS_WITH(safetensors::save({{"a", torch::ones(1)}}, scratch.path() / "circle"),
                    Catch::Contains("Too many levels of symbolic links"));
  CHECK(fs::is_symlink(scratch.path() / "circle"));
}

TEST_CASE("a file may have the longest name that there is", "[train][safetensors]") {
  const Scratch scratch;
  const auto file = scratch.path() / std::string(255, 'x');
  safetensors::save({{"a", torch::ones(1)}}, file);
  CHECK(safetensors::load(file).tensors.size() == 1);
  CHECK_THROWS_WITH(safetensors::save({{"a", torch::ones(1)}}, file.string() + "x"),
                    Catch::Contains("File name too long"));
  CHECK(others_in(scratch.path(), file.filename()) == 0);
}

TEST_CASE("a file is whole while processes that write it at once are killed",
          "[train][safetensors]") {
  torch::set_num_threads(1);  // no threads of LibTorch, which a fork would not have
  const Scratch scratch;
  const auto file = scratch.path() / "file";
  const auto is_whole = [&] {
    const auto found = safetensors::load(file).tensors;
    return found.at("a").eq(found.at("b")).all().item<bool>();
  };
  for (int round = 0; round < 10; ++round) {
    Writer first(file), second(file);
    REQUIRE(troupe::test::eventually([&] { return fs::exists(file); }));
    for (int look = 0; look < 10; ++look) {
      ::usleep(1000 + 100 * round);
      CHECK(is_whole());
    }
    first.kill();
    second.kill();
    CHECK(is_whole());
  }
  CHECK(others_in(scratch.path(), "file") > 0);  // of some that were killed in the middle
}
