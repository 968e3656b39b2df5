"""The compiled core, whichever level was loaded, under one name.

Its classes and functions say they live here, so that pickles and messages do not depend on the machine.
`_loader` chooses the level.
"""

from . import _loader

_module = _loader.load()
for _name, _value in vars(_module).items():
    if not _name.startswith("__"):
        globals()[_name] = _value
        if callable(_value):
            _value.__module__ = __name__
