// When loops that meet at every step use their team.
#include <doctest/doctest.h>

#include "base/crowding.hpp"

using mfcore::Crowding;

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
    CHECK(alone(crowding, 0.6, 1000) == 0);
    CHECK_FALSE(crowding.learning());
}

TEST_CASE("a team that is slower is tried again ever more rarely, by short pieces") {
    Crowding crowding;
    CHECK(alone(crowding, 50, 2) == 1);  // the second shows it
    CHECK(alone(crowding, 50, 4) == 4);
    CHECK(crowding.learning());
    CHECK(piece(crowding, 50) == 2);
    CHECK(alone(crowding, 50, 8) == 8);
    CHECK(alone(crowding, 50, 10000) >= 9950);
}

TEST_CASE("a machine that becomes quiet is noticed, and one that becomes busy again") {
    Crowding crowding;
    CHECK(alone(crowding, 50, 100) > 90);
    CHECK(alone(crowding, 0.6, 1000) < 300);  // the longest wait
    CHECK(alone(crowding, 0.6, 10) == 0);
    CHECK(piece(crowding, 50) == 2);
    CHECK(alone(crowding, 0.6, 10) == 4);  // and waits are short again
}
