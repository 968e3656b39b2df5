// Prints the best instruction-set level of the machine that builds.
#include <cstdio>

#include "../src/base/levels.hpp"

int main() {
    const auto found = mfcore::cpu::levels();
    std::puts(found.empty() ? "generic" : found.back());
}
