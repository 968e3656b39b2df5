// The module that answers which core may be loaded; by Python's own interface, because pybind11 would make it one of
// the longest compilations.
#include <Python.h>

#include "../src/base/levels.hpp"

namespace {

PyObject* levels(PyObject*, PyObject*) {
    PyObject* const found = PyList_New(0);
    if (!found) return nullptr;
    for (const char* level : mfcore::cpu::levels()) {
        PyObject* const name = PyUnicode_FromString(level);
        const bool added = name && PyList_Append(found, name) == 0;
        Py_XDECREF(name);
        if (!added) {
            Py_DECREF(found);
            return nullptr;
        }
    }
    return found;
}

PyMethodDef functions[] = {
    {"levels", levels, METH_NOARGS, "levels()\n--\n\nInstruction-set levels usable here, lowest first."},
    {nullptr, nullptr, 0, nullptr}};

/// Refuse sub-interpreters: pybind11 shares classes between interpreters of one GIL, and NumPy supports none.
int execute(PyObject*) {
    if (PyInterpreterState_Get() == PyInterpreterState_Main()) return 0;
    PyErr_SetString(PyExc_ImportError,
                    "mfcore must be imported by the main interpreter of a process, got a sub-interpreter: "
                    "its compiled core and NumPy do not support them; use processes");
    return -1;
}

PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(execute)},
#if PY_VERSION_HEX >= 0x030C0000
                            // execute() says it in better words than Python.
                            {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030D0000
                            {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
                            {0, nullptr}};

PyModuleDef module = {PyModuleDef_HEAD_INIT,
                      "_cpu",
                      "Asks the processor and the operating system what they support.",
                      0,
                      functions,
                      slots,
                      nullptr,
                      nullptr,
                      nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__cpu() { return PyModuleDef_Init(&module); }
