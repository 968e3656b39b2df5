// Prints the best instruction-set level of the machine that builds.
#include <cstdio>

#include "../bindings/levels.hpp"

int main() {
    const auto found = mfcore::bindings::levels();
    std::puts(found.empty() ? "generic" : found.back());
}
