"""A function in a module whose text tests edit."""

import importlib.util
import sys

NIGHT = """
import helpers
D = 20
def scale(x):
    return 2 * x
class Law:
    width = 3
    def draw(self, x):
        return self.width * x
LAW = Law()
DATA = [0.5] * 100
def run(x, rng, power=2):
    '''Say what it does.'''
    d = 20  # the dimension
    half = lambda z: z / 2
    return half(scale(x) + d + D) + helpers.shift(x) + LAW.draw(x) ** power + sum(DATA)
"""
HELPERS = "def shift(x):\n    return x + 1\ndef unused(x):\n    return x\n"


def loaded(folder, night=NIGHT, helpers=HELPERS):
    """The function `run` of a module with this text, as a new process would import it."""
    modules = []
    for name, text in (("helpers", helpers), ("night", night)):
        (folder / f"{name}.py").write_text(text)
        spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
        modules.append(importlib.util.module_from_spec(spec))
        sys.modules[name] = modules[-1]
        exec(compile(text, folder / f"{name}.py", "exec"), vars(modules[-1]))
    return modules[-1].run
