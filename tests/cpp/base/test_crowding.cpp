// When loops that meet at every step use their team.
#include <doctest/doctest.h>

#include "base/crowding.hpp"

using mfcore::Crowding;
using mfcore::Lateness;

namespace {

// The threads of the next piece, which takes `together` with a team and 1 alone.
int piece(Crowding& crowding, double together) {
    const int team = crowding.team(2);
    crowding.took(team, team == 1 ? 1.0 : together);
    return team;
}

int alone(Crowding& crowding, double together, int pieces) {
    int count = 0;
    for (int k = 0; k < pieces; ++k) count += piece(crowding, together) == 1;
    return count;
}

}  // namespace

TEST_CASE("a team that is faster is used from the second piece on") {
    Crowding crowding;
    CHECK(crowding.learning());
    CHECK(piece(crowding, 0.6) == 1);
    CHECK_FALSE(crowding.learning());
    CHECK(alone(crowding, 0.6, 1000) == 0);
}

TEST_CASE("a team that is slower is tried again ever more rarely") {
    Crowding crowding;
    CHECK(alone(crowding, 50, 2) == 1);  // the second shows it
    CHECK(alone(crowding, 50, 4) == 4);
    CHECK(piece(crowding, 50) == 2);
    CHECK(alone(crowding, 50, 8) == 8);
    CHECK(alone(crowding, 50, 10000) >= 9950);
}

TEST_CASE("a team gives up when it has taken twice as long as one thread, but for its start") {
    Crowding crowding;
    CHECK_FALSE(crowding.hopeless(1e9, 1));  // nothing to compare with
    crowding.took(1, 0.01);
    CHECK_FALSE(crowding.hopeless(0.0009, 0));
    CHECK(crowding.hopeless(0.0011, 0));
    CHECK_FALSE(crowding.hopeless(0.2, 10));
    CHECK(crowding.hopeless(0.202, 10));
}

TEST_CASE("a machine that becomes quiet is noticed, and one that becomes busy again") {
    Crowding crowding;
    CHECK(alone(crowding, 50, 100) > 90);
    CHECK(alone(crowding, 0.6, 1000) < 300);  // the longest wait
    CHECK(alone(crowding, 0.6, 10) == 0);
    CHECK(piece(crowding, 50) == 2);
    CHECK(alone(crowding, 0.6, 10) == 4);  // and waits are short again
}

TEST_CASE("after waiting for members without a core a thread goes on alone for ten times as long") {
    Lateness lateness;
    const Lateness::Clock::time_point now{std::chrono::hours(1)};
    const auto alone_after = [&](std::chrono::milliseconds later) { return lateness.alone_at(now + later); };
    lateness.waited(0.01, 0.0001, 0, now);  // no longer than waking takes
    CHECK_FALSE(alone_after(std::chrono::milliseconds(0)));
    lateness.waited(0.01, 0.09, 0.1, now);  // the other one had more work, and was at it all the time
    CHECK_FALSE(alone_after(std::chrono::milliseconds(0)));
    lateness.waited(0.01, 0.03, 0.005, now);  // it had less, and was nevertheless last
    CHECK(alone_after(std::chrono::milliseconds(299)));
    CHECK_FALSE(alone_after(std::chrono::milliseconds(301)));
    lateness.waited(0.01, 0.03, 0.02, now);              // of the 30 ms it used 10
    CHECK(alone_after(std::chrono::milliseconds(399)));  // the second time in a row: twice as long
    CHECK_FALSE(alone_after(std::chrono::milliseconds(401)));
    lateness.waited(0.01, 0.03, 0.02, now + std::chrono::hours(1));  // by then the team had paid for it
    CHECK_FALSE(alone_after(std::chrono::hours(1) + std::chrono::milliseconds(201)));
}
