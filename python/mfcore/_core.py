"""The compiled core, whichever level was loaded, under one name.

Its classes and functions say they live here, so that pickles and messages do not depend on the machine.
"""

from . import _loader

_module = _loader.load()
__all__ = sorted(_name for _name in vars(_module) if not _name.startswith("_"))
for _name in __all__:
    _value = globals()[_name] = getattr(_module, _name)
    if callable(_value):
        _value.__module__ = __name__
