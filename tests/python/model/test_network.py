"""The layout of a neuron's row."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mfcore import _core, activations, network
from mfcore.network import Network

NETWORKS = st.builds(
    Network,
    st.just(activations.relu),
    output=st.sampled_from(["one", "fixed", "trained"]),
    bias=st.sampled_from(["none", "trained"]),
    sphere=st.booleans(),
)


@given(net=NETWORKS, d=st.integers(1, 50))
def test_the_blocks_tile_the_row_in_the_order_a_b_w(net, d):
    columns = [column for where in net.blocks(d).values() for column in range(where.start, where.stop)]
    assert columns == list(range(net.row(d)))
    assert list(net.blocks(d)) == [block for block in "abw" if block in net.blocks(d)]
    assert net.blocks(d)["w"] == slice(net.row(d) - d, net.row(d))
    assert net._core.row(d) == net.row(d)


@pytest.mark.parametrize(
    ("output", "bias", "trained", "layout", "extra"),
    [
        ("one", "none", ("w",), "w…", 0),
        ("fixed", "none", ("w",), "a, w…", 1),
        ("trained", "none", ("a", "w"), "a, w…", 1),
        ("fixed", "trained", ("b", "w"), "a, b, w…", 2),
        ("trained", "trained", ("a", "b", "w"), "a, b, w…", 2),
    ],
)
def test_a_fixed_output_weight_is_stored_but_does_not_move(output, bias, trained, layout, extra):
    net = Network(activations.tanh, output=output, bias=bias)
    assert (net.trained, net.layout, net.row(7)) == (trained, layout, 7 + extra)


@given(net=NETWORKS)
def test_copies_and_pickles_are_equal_even_after_the_core_was_used(net):
    assert net._core is net._core
    for twin in (pickle.loads(pickle.dumps(net)), copy.deepcopy(net), network.from_config(net._to_config())):
        assert twin == net
        assert hash(twin) == hash(net)
        assert twin._core.row(3) == net.row(3)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"activation": "relu"},
            TypeError,
            "from mfcore.activations, got 'relu'; did you mean mf.activations.relu",
        ),
        ({"activation": "sgmoid"}, TypeError, "got 'sgmoid'; did you mean mf.activations.sigmoid"),
        ({"activation": 3}, TypeError, "activation must be an activation from mfcore.activations, got 3"),
        ({"output": "train"}, ValueError, "output must be one of .*, got 'train'; did you mean 'trained'"),
        ({"bias": "fix"}, ValueError, "bias must be one of 'none', 'fixed', 'trained', got 'fix'"),
        ({"sphere": 1}, TypeError, "sphere must be True or False, got 1"),
    ],
)
def test_what_a_network_cannot_be_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        Network(**{"activation": activations.relu, **arguments})


def test_a_table_of_another_kind_is_no_network():
    with pytest.raises(ValueError, match="a network must have the kind 'Network', got 'relu'"):
        network.from_config({"kind": "relu"})


def test_options_of_a_network_are_named():
    with pytest.raises(TypeError, match="positional arguments"):
        Network(activations.relu, "trained")


@pytest.mark.parametrize(
    ("name", "rule"), [("output", "one, fixed or trained"), ("bias", "none, fixed or trained")]
)
def test_the_core_refuses_words_that_it_does_not_know(name, rule):
    """They counted as trained."""
    with pytest.raises(ValueError, match=f"{name} must be {rule}, got learned"):
        _core.Network(activations.relu._core, **{name: "learned"})
