// Ctrl-C and time limits of calls into the core: how the question "stop?" is answered.
#include "deadline.hpp"

#include <atomic>

#include "arrays.hpp"

namespace mfcore::bindings {
namespace {

// A Python process has one main thread; a fork makes the thread that called it the main one.
std::atomic<unsigned long> main_thread{0};
constinit thread_local Deadline* innermost_deadline = nullptr;

/// The time point `seconds` from now, which may be infinite.
std::chrono::steady_clock::time_point in(double seconds) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point now = Clock::now();
    const std::chrono::duration<double> most = Clock::time_point::max() - now;
    if (!(seconds < 0.5 * most.count())) return Clock::time_point::max();
    return now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

bool on_main_thread() { return main_thread.load(std::memory_order_relaxed) == PyThread_get_thread_ident(); }

bool ctrl_c_pressed() {
    return with_gil([] {
        if (PyErr_CheckSignals() == 0) return false;
        if (!PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) throw py::error_already_set();
        PyErr_Clear();
        return true;
    });
}

Deadline::Deadline(double seconds) : end_(in(seconds)) {}

void Deadline::open() {
    require(!open_, "deadline", "must not be open", true);
    outer_ = std::exchange(innermost_deadline, this);
    open_ = true;
}

void Deadline::close() {
    if (open_) innermost_deadline = outer_;
    open_ = false;
}

Deadline* Deadline::current() { return innermost_deadline; }

Released::Released() : Released(INFINITY) {
    if (!deadline_ || !deadline_->passed()) return;  // polls come after 50 ms: many short calls take longer
    deadline_->expire();
    throw Interrupted();  // all is constructed: the destructor takes the GIL back
}

Released::Released(double seconds)
    : deadline_(Deadline::current()), main_thread_(on_main_thread()), end_(in(seconds)) {
    py::detail::get_internals();  // what gil_scoped_acquire needs
    state_ = PyEval_SaveThread();
    scope_.emplace([this] { return wants_stop(); });
}

Released::~Released() {
    scope_.reset();
    outliving_python([&] { PyEval_RestoreThread(state_); });
}

bool Released::wants_stop() {
    if (main_thread_ && !ctrl_c_) ctrl_c_ = ctrl_c_pressed();
    if (ctrl_c_) return true;
    if (!deadline_ || !deadline_->passed()) return false;
    deadline_->expire();
    return true;
}

void bind_deadline(py::module_& m) {
    const auto this_one = [] { main_thread = PyThread_get_thread_ident(); };
    main_thread = py::module_::import("threading").attr("main_thread")().attr("ident").cast<unsigned long>();
    py::module_::import("os").attr("register_at_fork")(py::arg("after_in_child") =
                                                           py::cpp_function(this_one));

    static PyObject* out_of_time = nullptr;  // lives as long as the process, as the module does
    out_of_time = PyErr_NewExceptionWithDoc("mfcore._core.OutOfTime",
                                            "The deadline passed: stops what Ctrl-C stops, which must be in "
                                            "order again afterwards just the same.",
                                            PyExc_KeyboardInterrupt, nullptr);
    if (!out_of_time) throw py::error_already_set();
    m.add_object("OutOfTime", py::reinterpret_borrow<py::object>(out_of_time));
    py::register_local_exception_translator([](std::exception_ptr error) {
        try {
            if (error) std::rethrow_exception(error);
        } catch (const Interrupted&) {
            const Deadline* const deadline = Deadline::current();
            PyErr_SetNone(deadline && deadline->expired() ? out_of_time : PyExc_KeyboardInterrupt);
        }
    });

    py::class_<Deadline>(m, "Deadline", "A time limit for the calls of this thread while it is open.")
        .def(py::init<double>(), py::arg("seconds"))
        .def("open", &Deadline::open)
        .def("close", &Deadline::close)
        .def_property_readonly("expired", &Deadline::expired);
    m.def("check_stop", [] { const Released nogil; }, "Raise what a long call would raise now.");
}

}  // namespace mfcore::bindings
