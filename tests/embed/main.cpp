// Uses the installed library from C++ alone. Prints lines "name value", which tests/packaging/test_embed.py
// compares with what Python computes from the same numbers.
#include <cstdio>
#include <mfcore/run.hpp>

int main() {
    std::printf("isa %s\n", mfcore::build_info().isa.c_str());
    std::printf("threads %d\n", mfcore::resolve_threads(3));
    return 0;
}
