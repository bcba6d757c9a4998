#pragma once

#include <string>

namespace troupe::launch {

/// The variable that names the file into which a rank's program writes the exception that ended it:
/// PyTorch's, whose `torch.distributed.elastic.multiprocessing.errors.record` is what programs
/// under torchrun are written with.
inline constexpr const char* kErrorFileVariable = "TORCHELASTIC_ERROR_FILE";

/// What such a file tells (torch/distributed/elastic/multiprocessing/errors/error_handler.py): the
/// traceback of Python, message.extraInfo.py_callstack, else the message; 64 KiB of its end at most.
/// Empty where the text is no such JSON. Pure.
std::string traceback_in(const std::string& text);

/// traceback_in() of the file. Empty where there is no file, and where it has more than 4 MiB.
std::string traceback_of(const std::string& file);

}  // namespace troupe::launch
