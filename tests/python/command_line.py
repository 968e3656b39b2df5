"""What tests of the command line share: a small configuration, and a call of a command."""

from mfcore.cli import main

CONFIG = """
horizon = 1.0
save_at = 5
rng = 3

[model]
kind = "Model"
data = { kind = "IsotropicGaussians", d = 6, delta = 0.5 }
network = { kind = "Network", activation = { kind = "relu" } }
init = { kind = "Gaussian", std = 0.3 }

[method]
kind = "SGD"
neurons = 20
step = 0.01
"""


def run(capsys, *arguments):
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err
