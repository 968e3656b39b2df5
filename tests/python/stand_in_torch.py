"""The part of torch that `mf.to_torch` and `mf.from_torch` use, on NumPy: for environments without torch."""

import contextlib
import math
import types

import numpy as np

float64 = np.float64
no_grad = contextlib.nullcontext


class Tensor(np.ndarray):
    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return np.asarray(self)

    def to(self, other):
        return self.astype(other.dtype)

    def copy_(self, other):
        self[...] = other


def from_numpy(array):
    return array.view(Tensor)


def erf(z):
    return np.vectorize(math.erf, otypes=[float])(z)


class Module:
    def __call__(self, x):
        return self.forward(x)

    def children(self):
        return (value for value in vars(self).values() if isinstance(value, Module))


class Sequential(Module):
    def __init__(self, *layers):
        vars(self).update({str(k): layer for k, layer in enumerate(layers)})

    def forward(self, x):
        for layer in self.children():
            x = layer(x)
        return x


class Linear(Module):
    def __init__(self, columns, rows, bias=True, dtype=np.float32):
        self.weight = from_numpy(np.ones((rows, columns), dtype))
        self.bias = from_numpy(np.ones(rows, dtype)) if bias else None

    def forward(self, x):
        z = x @ self.weight.T
        return z if self.bias is None else z + self.bias


class Softplus(Module):
    def __init__(self, beta=1.0, threshold=20.0):
        self.beta, self.threshold = beta, threshold

    def forward(self, z):
        return np.where(self.beta * z > self.threshold, z, np.logaddexp(0, self.beta * z) / self.beta)


class GELU(Module):
    def __init__(self, approximate="none"):
        self.approximate = approximate

    def forward(self, z):
        return 0.5 * z * (1 + erf(z / math.sqrt(2)))


def entrywise(name, function):
    return type(name, (Module,), {"forward": lambda self, z: function(z)})


class Function:
    @classmethod
    def apply(cls, z):
        return cls.forward(types.SimpleNamespace(save_for_backward=lambda *_: None), z)


nn = types.SimpleNamespace(
    Module=Module,
    Sequential=Sequential,
    Linear=Linear,
    Softplus=Softplus,
    GELU=GELU,
    ReLU=entrywise("ReLU", lambda z: np.maximum(z, 0)),
    Tanh=entrywise("Tanh", np.tanh),
    Sigmoid=entrywise("Sigmoid", lambda z: 1 / (1 + np.exp(-z))),
    SiLU=entrywise("SiLU", lambda z: z / (1 + np.exp(-z))),
    Identity=entrywise("Identity", lambda z: z),
)
autograd = types.SimpleNamespace(Function=Function)
