// Processor quotas of control groups.
#include "base/quota.hpp"

#include <algorithm>
#include <fstream>

namespace mfcore::inline MFCORE_LEVEL::inline base {
namespace {

/// Processors by a file "quota period" in microseconds, the quota of no limit being "max"; 0 for those, and
/// for no file.
int processors_in(const std::string& file) {
    std::ifstream in(file);
    double quota = 0, period = 0;
    if (!(in >> quota >> period) || !(quota > 0 && period > 0)) return 0;
    return static_cast<int>(std::clamp(quota / period, 1.0, 1e6));
}

/// The path of the group in a list of lines "number:controllers:path"; that of version 2 has number 0.
std::string group_in(const std::string& membership) {
    std::ifstream in(membership);
    for (std::string line; std::getline(in, line);)
        if (line.starts_with("0::/")) return line.substr(3);
    return "/";
}

}  // namespace

int quota_of_group(const std::string& membership, const std::string& root) {
    int least = 0;
    std::string group = group_in(membership);
    while (true) {
        const int here = processors_in(root + group + "/cpu.max");
        if (here > 0) least = least > 0 ? std::min(least, here) : here;
        if (group.size() <= 1) return least;
        group.resize(std::max<std::size_t>(1, group.rfind('/')));
    }
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
