// One program that holds every installed level. Without arguments it works at the best one for this machine; or at those
// that are named. Prints a line for each: the level and its numbers.
#include <cstdio>
#include <mfcore/base/best.hpp>
#include <string_view>

#include "work.hpp"

namespace {

void work_at(std::string_view level) {
    std::vector<double> numbers;
#define EMBED_CALL(name) \
    if (level == #name) numbers = embed::name::work();
    MFCORE_EACH_LEVEL(EMBED_CALL)
    for (const double number : numbers) std::printf(" %.17g", number);
    std::printf("\n");
}

}  // namespace

int main(int count, char** arguments) {
    if (count == 1) work_at(mfcore::best());
    for (int k = 1; k < count; ++k) work_at(arguments[k]);
    return 0;
}
