// Processor quotas of control groups, from files like those of the kernel.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/quota.hpp"

namespace {

namespace fs = std::filesystem;
using mfcore::quota_of_group;

/// A folder with files of groups, removed at the end.
class Groups {
public:
    Groups() : folder_(fs::temp_directory_path() / ("mfcore-quota-" + std::to_string(getpid()))) {
        fs::create_directories(folder_ / "job" / "task");
    }
    ~Groups() { fs::remove_all(folder_); }
    void write(const char* file, const char* text) const { std::ofstream(folder_ / file) << text; }
    int quota() const { return quota_of_group((folder_ / "membership").string(), folder_.string()); }

private:
    fs::path folder_;
};

}  // namespace

TEST_CASE("without a control group, and with one without a limit, there is no quota") {
    const Groups groups;
    CHECK(groups.quota() == 0);
    groups.write("membership", "0::/job\n");
    groups.write("job/cpu.max", "max 100000\n");
    CHECK(groups.quota() == 0);
}

TEST_CASE("a quota counts whole processors, and one at least") {
    const Groups groups;
    groups.write("membership", "12:cpu:/old\n0::/job\n");
    groups.write("job/cpu.max", "350000 100000\n");
    CHECK(groups.quota() == 3);
    groups.write("job/cpu.max", "5000 100000\n");
    CHECK(groups.quota() == 1);
}

TEST_CASE("the smallest quota of a group and those around it counts") {
    const Groups groups;
    groups.write("membership", "0::/job/task\n");
    groups.write("job/task/cpu.max", "max 100000\n");
    groups.write("job/cpu.max", "200000 100000\n");
    CHECK(groups.quota() == 2);
    groups.write("job/task/cpu.max", "400000 100000\n");
    CHECK(groups.quota() == 2);
}

TEST_CASE("a group whose path the container does not show has the quota of the container's root") {
    const Groups groups;
    groups.write("membership", "0::/docker/1f2e\n");
    groups.write("cpu.max", "100000 100000\n");
    CHECK(groups.quota() == 1);
}
