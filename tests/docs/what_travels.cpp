// What docs/what_travels.md shows, as a driver: each line that it prints is one fact.
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fcntl.h>
#include <unistd.h>
#include <troupe/troupe.hpp>

namespace {

// [globals]
const pid_t initialised_in = getpid();  // a static initialiser
std::string phase = "before main";
int runs = 0;

std::string phase_there() { return phase; }
int count_runs() { return ++runs; }
// [/globals]

pid_t initialised_there() { return initialised_in; }

std::string variable_there(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "(not set)" : value;
}

std::string directory_there() { return std::filesystem::current_path(); }

std::string argument_there(int number) {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::string argument;
  for (int at = 0; at <= number; ++at) std::getline(in, argument, '\0');
  return argument;
}

std::string file_there(int descriptor) {
  std::error_code error;
  const auto file =
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), error);
  return error ? "(closed)" : file.filename().string();
}

// [values]
enum class Kind { Image, Text };

struct Log {
  void add(std::string line) { lines.push_back(std::move(line)); }
  std::size_t size() const { return lines.size(); }
  std::vector<std::string> lines;
};

struct Sample {  // an aggregate needs no code
  Kind kind = Kind::Image;
  std::optional<std::string> label;
  std::variant<int, std::vector<float>> pixels;
  std::map<std::string, std::chrono::milliseconds> times;
  std::shared_ptr<const std::string> camera;
  std::filesystem::path file;
  troupe::Array<float> mask;       // read where it lies, if it is large
  troupe::Ref<std::string> title;  // a value that need not be there yet
  troupe::Actor<Log> log;          // an object that stays where it is
};
// [/values]

std::string describe(const Sample& sample) {
  sample.log.call<&Log::add>("a sample came").get();
  return sample.title.get() + " of " + *sample.label + ", from " + sample.file.filename().string() +
         " by " + *sample.camera + ", " + std::to_string(std::get<1>(sample.pixels).size()) +
         " pixels, " + std::to_string(sample.mask.size()) + " in the mask";
}

// [own code]
class Matrix {
 public:
  Matrix() = default;  // what travels is made, then read
  Matrix(std::size_t columns, std::vector<double> values)
      : columns_(columns), values_(std::move(values)) {}
  std::size_t rows() const { return values_.size() / columns_; }

  template <class Archive>
  void serialize(Archive& archive) {
    archive(columns_, values_);
  }

 private:
  std::size_t columns_ = 1;
  std::vector<double> values_;
};
// [/own code]

std::size_t rows_of(const Matrix& matrix) { return matrix.rows(); }

// [closure]
struct Scale {  // a function with a state is an object that travels with its call
  double factor = 1;
  double operator()(double x) const { return factor * x; }
};
double apply(const Scale& scale, double x) { return scale(x); }
// [/closure]

int throws_out_of_range() { return std::array<int, 3>{}.at(4); }

template <class T>
void fact(const char* what, const T& value) {
  std::cout << what << ": " << value << std::endl;
}

void surroundings(char** argv, int early) {
  fact("phase", troupe::task<phase_there>().get());
  fact("runs there", troupe::task<count_runs>().get());
  fact("runs here", runs);
  fact("initialised", troupe::task<initialised_there>().get() == getpid() ? "here" : "there");
  for (const char* name : {"FROM_SHELL", "FROM_MAIN", "FROM_LATER_MAIN", "TROUPE_TOKEN"})
    fact(name, troupe::task<variable_there>(std::string(name)).get());
  fact("directory", troupe::task<directory_there>().get());
  fact("argument", troupe::task<argument_there>(1).get() == argv[1] ? "the same" : "another");
  fact("input", troupe::task<file_there>(0).get());
  fact("early file", troupe::task<file_there>(early).get());
  const int late = ::open("/dev/full", O_RDONLY);
  fact("late file", troupe::task<file_there>(late).get() == "full" ? "open" : "not open");
}

void values() {
  const auto log = troupe::with({.cpus = 0}).spawn<Log>();
  Sample sample;
  sample.label = "a cat";
  sample.pixels = std::vector<float>(12, 0.5F);
  sample.times["taken"] = std::chrono::milliseconds(7);
  sample.camera = std::make_shared<const std::string>("a camera");
  sample.file = "photos/cat.raw";
  sample.mask = troupe::Array<float>(std::vector<float>(100'000, 1.0F));
  sample.title = troupe::put("portrait");
  sample.log = log;
  fact("sample", troupe::task<describe>(sample).get());
  fact("log", log.call<&Log::size>().get());
  fact("rows", troupe::task<rows_of>(Matrix(2, {1, 2, 3, 4})).get());
  fact("scaled", troupe::task<apply>(Scale{2.5}, 4.0).get());
  // [lambda]
  auto doubled = troupe::task<[](int x) { return 2 * x; }>(21);
  // [/lambda]
  fact("doubled", doubled.get());
  // [exception]
  try {
    troupe::task<throws_out_of_range>().get();
  } catch (const troupe::TaskError& error) {  // never std::out_of_range itself
    std::cout << "thrown: " << error.type() << std::endl;
  }
  // [/exception]
}

}  // namespace

// [main]
int main(int argc, char** argv) {
  phase = "before init";
  ::setenv("FROM_MAIN", "set", 1);
  const int early = ::open("/dev/zero", O_RDONLY);
  auto cluster = troupe::init(argc, argv);  // a worker process goes no further than here
  phase = "after init";
  ::setenv("FROM_LATER_MAIN", "set", 1);
  // [/main]
  try {
    surroundings(argv, early);
    values();
  } catch (const std::exception& error) {
    std::cerr << "what_travels: " << error.what() << '\n';
    return 1;
  }
}
