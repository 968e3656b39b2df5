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

PyModuleDef_Slot slots[] = {
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
