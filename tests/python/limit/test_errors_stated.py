"""What `Trajectory.error` claims: |risk − R(ρ_t)| of the exact limit flow is not larger."""

import mfcore as mf
import numpy as np
import pytest


def radii(activation=mf.activations.relu, **options):
    return mf.Model(
        data=mf.data.IsotropicGaussians(d=40, delta=0.5),
        network=mf.Network(activation),
        init=mf.init.Radial(0.5),
        **options,
    )


@pytest.mark.parametrize("method", ["lsoda", "bdf", "radau", "dopri5"])
def test_atoms_that_are_given_state_the_error_of_every_integrator(method):
    reduced = radii().reduce()
    rho = mf.Cloud(np.linspace(0.3, 0.8, 9)[:, None])
    best = mf.solve(reduced, mf.Atoms(start=rho, rtol=1e-12, atol=1e-13), horizon=2.0, save_at=5)
    for rtol in (1e-4, 1e-6):
        run = mf.solve(
            reduced, mf.Atoms(start=rho, method=method, rtol=rtol, atol=rtol), horizon=2.0, save_at=5
        )
        assert (run.error > 0).all()
        assert (np.abs(run.risk - best.risk) <= run.error).all()
        assert run.error.max() < 300 * rtol  # errors of 1 to 30 tolerances, stated some ten times as large


def test_minimising_movements_in_three_coordinates_are_refused_if_a_step_took_minutes():
    link = {(1, 0): 1.0, (1, 1): 0.7, (0, 2): 0.5}
    model = mf.Model(
        data=mf.data.MultiIndex(20, link, 2),
        network=mf.Network(mf.activations.tanh),
        init=mf.init.Gaussian(0.2),
    )
    reduced = model.reduce()
    with pytest.raises(
        ValueError, match=r"mf\.JKO would take about \d+ s per step .*model\.reduce\(nodes=12\)"
    ):
        mf.solve(reduced, mf.JKO(0.05), horizon=0.1)
    few = model.reduce(nodes=4)
    run = mf.solve(few, mf.JKO(0.05, count=27), horizon=0.1)  # with fewer nodes it runs
    assert run.status == "completed"
    assert run.risk[-1] < run.risk[0]
