// Plays a tape from C++: a list of operators with their arguments ready on a stack, called one after the other.
//
// What is left of a kernel's cost is PyTorch's dispatcher and the kernel itself. Python is not entered, and the lock of
// its interpreter is released while the loop runs.

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace {

struct Call {
  c10::OperatorHandle op;
  std::vector<c10::IValue> arguments;
  std::vector<std::pair<size_t, at::Tensor>> copies;  // number of a returned tensor, memory that it goes to
};

class Loop {
 public:
  // arguments: one for each of the operator's declaration, in its order.
  void add(const std::string& name, const std::string& overload, const py::list& arguments,
           std::vector<std::pair<size_t, at::Tensor>> copies) {
    auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), overload.c_str());
    const auto& declared = op.schema().arguments();
    TORCH_CHECK(declared.size() == arguments.size(), name, " takes ", declared.size(), " arguments, got ",
                arguments.size());
    Call call{op, {}, std::move(copies)};
    for (size_t i = 0; i < declared.size(); ++i) {
      call.arguments.push_back(torch::jit::toIValue(arguments[i], declared[i].type()));
    }
    calls_.push_back(std::move(call));
  }

  void run() const {
    py::gil_scoped_release unlocked;
    Plain plain;
    torch::jit::Stack stack;
    for (const auto& call : calls_) {
      issue(call, stack);
    }
  }

  // Runs the whole tape `repeats` times. Returns the shortest time of each call, in seconds.
  std::vector<double> shortest(int repeats) const {
    using Clock = std::chrono::steady_clock;
    py::gil_scoped_release unlocked;
    Plain plain;
    torch::jit::Stack stack;
    std::vector<double> seconds(calls_.size(), std::numeric_limits<double>::infinity());
    for (int repeat = 0; repeat < repeats; ++repeat) {
      for (size_t i = 0; i < calls_.size(); ++i) {
        const auto start = Clock::now();
        issue(calls_[i], stack);
        seconds[i] = std::min(seconds[i], std::chrono::duration<double>(Clock::now() - start).count());
      }
    }
    return seconds;
  }

 private:
  // The caller's modes were in force when the step was recorded. They are not again.
  struct Plain {
    c10::impl::ExcludeDispatchKeyGuard guard{
        c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset |
        c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot})};
  };

  static void issue(const Call& call, torch::jit::Stack& stack) {
    stack.assign(call.arguments.begin(), call.arguments.end());
    call.op.callBoxed(stack);
    if (!call.copies.empty()) {
      copy(call, stack);
    }
  }

  static void copy(const Call& call, const torch::jit::Stack& stack) {
    std::vector<at::Tensor> results;
    for (const auto& value : stack) {
      if (value.isTensor()) {
        results.push_back(value.toTensor());
      } else if (value.isTensorList()) {
        for (const at::Tensor& tensor : value.toTensorVector()) {
          results.push_back(tensor);
        }
      }
    }
    for (const auto& [number, memory] : call.copies) {
      at::Tensor result = results.at(number);
      for (int64_t dim = 0; dim < memory.dim(); ++dim) {
        if (result.size(dim) != memory.size(dim)) {  // memory that repeats itself is given with each place once
          result = result.narrow(dim, 0, memory.size(dim));
        }
      }
      memory.copy_(result);
    }
  }

  std::vector<Call> calls_;
};

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  py::class_<Loop>(module, "Loop").def(py::init<>()).def("add", &Loop::add).def("run", &Loop::run).def(
      "shortest", &Loop::shortest);
}
