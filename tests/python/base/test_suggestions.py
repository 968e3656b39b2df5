"""A misspelt name is answered with the right one, wherever it is given."""

import inspect
import pickle
import typing

import mfcore as mf
import pytest
from mfcore._base.registry import public_names

MODULES = (mf, mf.activations, mf.conventions, mf.data, mf.init, mf.plots, mf.steppers, mf.theory)
MODEL = mf.Model(
    data=mf.data.IsotropicGaussians(d=4, delta=0.5),
    network=mf.Network(mf.activations.relu),
    init=mf.init.Radial(0.5),
)


def public_callables():
    for module in MODULES:
        for name in public_names(module):
            value = getattr(module, name)
            if inspect.isfunction(value) or inspect.isclass(value):
                yield f"{module.__name__}.{name}", value
            if inspect.isclass(value):
                for method, function in inspect.getmembers(value, inspect.isfunction):
                    if not method.startswith("_"):
                        yield f"{module.__name__}.{name}.{method}", function


def open_ended(function):
    """Whether a function hands its keywords on to another one, which answers for them."""
    return any(p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values())


CALLABLES = {name: f for name, f in public_callables() if not open_ended(f)}


@pytest.mark.parametrize("name", CALLABLES)
def test_every_public_callable_proposes_the_keyword_that_was_meant(name):
    function = CALLABLES[name]
    parameters = inspect.signature(function).parameters.values()
    known = [p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    for keyword in (k for k in known if k not in ("self", "model") and len(k) > 3):
        with pytest.raises(TypeError, match=rf"unknown keyword argument '{keyword}q'; did you mean"):
            function(**{keyword + "q": 1})


def test_the_proposals_are_those_a_user_needs():
    for call, meant in (
        (lambda: mf.solve(MODEL, mf.SGD(5, 0.1), horizont=1.0), "horizon"),
        (lambda: mf.SGD(neuron=50, step=0.1), "neurons"),
        (lambda: mf.data.IsotropicGaussians(d=4, detla=0.5), "delta"),
        (lambda: mf.activations.piecewise_linear(knot=[0.0], values=[1.0]), "knots"),
        (lambda: MODEL.data.draw(5, rgn=0), "rng"),
        (lambda: MODEL.reduce(limits=True), "limit"),
        (lambda: MODEL.replace(ridg=0.1), "ridge"),
        (lambda: mf.gibbs_path(MODEL, [0.1], cell=20), "cells"),
        (lambda: mf.Model(data=MODEL.data, netwrok=MODEL.network), "network"),
    ):
        with pytest.raises(TypeError, match=f"; did you mean '{meant}'[?]"):
            call()


def test_names_of_other_libraries_are_answered_with_ours():
    method = mf.SGD(5, 0.1)
    for call, meant in (
        (lambda: mf.solve(MODEL, method, horizon=1.0, seed=0), "did you mean 'rng'?"),
        (lambda: mf.solve(MODEL, method, horizon=1.0, random_state=0), "did you mean 'rng'?"),
        (lambda: MODEL.data.draw(5, seed=0), "did you mean 'rng'?"),
        (lambda: mf.sweep(len, {}, seed=0), "did you mean 'rng'?"),
        (lambda: mf.solve(MODEL, method, n_steps=5), "did you mean 'steps'?"),
        (lambda: mf.solve(MODEL, method, n_epochs=5), "did you mean 'epochs'?"),
        (lambda: mf.SGD(5, lr=0.1), "did you mean 'step'?"),
        (lambda: mf.GD(5, learning_rate=0.1), "did you mean 'step'?"),
        (lambda: mf.SGD(width=5, step=0.1), "did you mean 'neurons'?"),
        (lambda: mf.SGD(5, 0.1, batch_size=2), "did you mean 'batch'?"),
        (lambda: mf.risk(MODEL, theta=[[1.0] * 4]), "did you mean 'measure'?"),
        (lambda: mf.predict(MODEL, theta=[[1.0] * 4], X=[[1.0] * 4]), "did you mean 'measure'?"),
        (lambda: mf.predict(MODEL, measure=[[1.0] * 4], x=[[1.0] * 4]), "did you mean 'X'?"),
        (lambda: mf.V(MODEL, measure=[[1.0] * 4]), "did you mean 'theta'?"),
        (lambda: mf.SGD(5, 0.1, epochs=2), "epochs is an argument of mf.solve"),
        (lambda: mf.SGD(5, 0.1, seed=2), "rng is an argument of mf.solve"),
        (lambda: mf.solve(MODEL, method, horizon=1.0, lr=0.1), "step is an argument of a method such as"),
        (lambda: mf.solve(MODEL, method, horizon=1.0, weight_decay=0.1), "ridge is an argument of mf.Model"),
    ):
        with pytest.raises(TypeError) as caught:
            call()
        assert meant in str(caught.value)


def test_a_keyword_close_to_none_is_answered_with_all_of_them():
    with pytest.raises(TypeError, match="unknown keyword argument 'xyz'; it takes neurons, step, "):
        mf.SGD(5, 0.1, xyz=1)


def test_other_type_errors_stay_as_they_are():
    with pytest.raises(TypeError, match="solve needs one of horizon, steps and epochs, got none"):
        mf.solve(MODEL, mf.SGD(5, 0.1))
    with pytest.raises(TypeError, match="model must be"):
        mf.solve("model", mf.SGD(5, 0.1), horizon=1.0)


def test_an_error_inside_a_call_is_not_taken_for_a_misspelt_keyword():
    def observer(measure):
        raise TypeError("got an unexpected keyword argument 'horizont'")

    with pytest.raises(TypeError, match="got an unexpected keyword argument 'horizont'") as caught:
        mf.solve(MODEL, mf.SGD(5, 0.1), horizon=1.0, observe={"odd": observer})
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize("function", [mf.solve, mf.risk, mf.theory.leap, mf.activations.hermite])
def test_wrapped_functions_pickle_by_name_and_keep_signature_and_documentation(function):
    assert pickle.loads(pickle.dumps(function)) is function
    assert inspect.getdoc(function)
    assert "args" not in inspect.signature(function).parameters
    assert typing.get_type_hints(inspect.unwrap(function))


def test_classes_keep_their_signature_repr_and_pickles():
    method = mf.SGD(5, 0.1)
    assert list(inspect.signature(mf.SGD).parameters)[:2] == ["neurons", "step"]
    assert pickle.loads(pickle.dumps(method)) == method
    assert repr(method).startswith("SGD(neurons=5, step=0.1")


def test_an_unknown_activation_in_a_file_is_answered_with_activations_alone(tmp_path):
    file = tmp_path / "model.toml"
    file.write_text('network = { kind = "Network", activation = { kind = "swish" } }')
    with pytest.raises(ValueError, match=r"network\.activation: unknown kind 'swish'") as caught:
        mf.load_config(file)
    for name in ("relu", "tanh", "gelu", "piecewise_linear"):
        assert name in str(caught.value)
    for name in ("Gaussian", "Dataset", "SGD", "Model"):
        assert name not in str(caught.value)


def test_an_unknown_law_in_a_file_is_answered_with_laws_of_its_kind(tmp_path):
    file = tmp_path / "model.toml"
    file.write_text(
        'kind = "Model"\ndata = { kind = "Mnist" }\n'
        'network = { kind = "Network", activation = { kind = "relu" } }'
    )
    with pytest.raises(ValueError, match=r"data: unknown kind 'Mnist'; known kinds: .*Dataset") as caught:
        mf.load_config(file)
    assert "relu" not in str(caught.value)


def test_an_activation_given_by_an_unknown_name_is_answered_with_those_there_are():
    with pytest.raises(TypeError, match=r"got 'swish'; there are .*gelu.*relu"):
        mf.Network("swish")


@pytest.mark.parametrize(("bias", "word"), [(True, "trained"), (False, "none")])
def test_a_truth_value_for_the_bias_is_answered_with_the_word_for_it(bias, word):
    with pytest.raises(ValueError, match=f"bias must be one of .*, got {bias}; did you mean '{word}'"):
        mf.Network(mf.activations.relu, bias=bias)
