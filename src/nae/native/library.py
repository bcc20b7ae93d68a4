"""The shared object: where it is, what it offers, and why it is missing."""

import ctypes
import functools
import os
from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_uint8, c_uint64, c_void_p
from pathlib import Path
from typing import ClassVar

__all__ = [
    "INSTRUCTIONS",
    "PATH",
    "CConfig",
    "CForms",
    "CInputs",
    "CRows",
    "best_instructions",
    "is_here",
    "library",
    "reason",
]

PATH = Path(__file__).parent / ("_core.dll" if os.name == "nt" else "_core.so")
INSTRUCTIONS = ("best", "portable", "AVX2", "AVX-512")
"""Sets of instructions, as the core numbers them; the first is the best that the processor has."""


class CConfig(ctypes.Structure):
    """``nae_config`` of cpp/abi.h, which explains the fields."""

    _fields_: ClassVar = [
        *(
            (name, c_int32)
            for name in (
                "is_double",
                "instructions",
                "n_members",
                "n_features",
                "n_outputs",
                "n_experts",
                "n_active",
                "hidden",
                "n_blocks",
                "n_inputs",
                "gate",
                "n_terms",
                "routing",
                "loss",
                "batch_size",
                "n_threads",
                "averaged_steps",
                "n_kept",
                "has_dial",
            )
        ),
        *(
            (name, c_double)
            for name in (
                "temperature",
                "weight_decay",
                "variation",
                "output",
                "context",
                "dial_target",
                "dial_log_least",
            )
        ),
    ]


class CForms(ctypes.Structure):
    """``nae_forms`` of cpp/abi.h."""

    _fields_: ClassVar = [
        *((name, POINTER(c_int32)) for name in ("n_ordered", "rises", "bends")),
        *((name, POINTER(c_uint8)) for name in ("is_single", "is_sorted", "leads")),
        *((name, POINTER(c_double)) for name in ("places", "caps")),
        ("allows", POINTER(c_uint8)),
        ("sharpness", c_double),
        ("sorts_outputs", c_int32),
        ("n_leading", c_int32),
    ]


class CInputs(ctypes.Structure):
    """``nae_inputs`` of cpp/abi.h."""

    _fields_: ClassVar = [
        ("n_slots", POINTER(c_int32)),
        ("values", POINTER(c_double)),
        ("slot_weight", POINTER(c_double)),
        ("variation_slots", c_double),
        ("is_live", POINTER(c_uint8)),
        ("start", POINTER(c_double)),
        ("start_offset", POINTER(c_double)),
        ("own_fold", POINTER(c_int32)),
        ("forms", POINTER(CForms)),
        ("left", POINTER(c_double)),
        ("roughness", POINTER(c_double)),
        ("loss_option", POINTER(c_double)),
    ]


class CRows(ctypes.Structure):
    """``nae_rows`` of cpp/abi.h."""

    _fields_: ClassVar = [
        ("slot", c_void_p),
        ("fraction", c_void_p),
        ("target", c_void_p),
        ("label", c_void_p),
        ("weight", c_void_p),
        ("base", c_void_p),
        ("fold", c_void_p),
    ]


_BUILD = "`python -m nae.native.build`"
_ABI_VERSION = 6  # of cpp/abi.h
_ROWS, _CORE, _ARRAY = POINTER(CRows), c_void_p, c_void_p
_FUNCTIONS = {
    "nae_abi_version": (c_int32, []),
    "nae_sources": (c_char_p, []),
    "nae_best_instructions": (c_int32, []),
    "nae_new": (c_void_p, [POINTER(CConfig), POINTER(CInputs)]),
    "nae_delete": (None, [_CORE]),
    "nae_set": (c_int32, [_CORE, c_int32, c_int32, _ARRAY]),
    "nae_get": (c_int32, [_CORE, c_int32, c_int32, _ARRAY]),
    "nae_restart_mean": (None, [_CORE]),
    "nae_set_dial": (None, [_CORE, c_double, c_double]),
    "nae_get_dial": (None, [_CORE, POINTER(c_double), POINTER(c_double)]),
    "nae_noise_per_step": (c_uint64, [_CORE]),
    "nae_train": (c_int32, [_CORE, _ROWS, _ARRAY, c_int64, c_int64, _ARRAY, c_uint64, _ARRAY]),
    "nae_gradients": (c_int32, [_CORE, _ROWS, _ARRAY, c_uint64, _ARRAY]),
    "nae_score": (c_int32, [_CORE, _ROWS, _ARRAY, _ARRAY, c_int32, _ARRAY]),
    "nae_losses": (c_int32, [_CORE, _ROWS, _ARRAY, c_int64, _ARRAY, _ARRAY]),
    "nae_additivity": (c_int32, [_CORE, _ROWS, _ARRAY, c_int64, c_int32, POINTER(c_double)]),
}


@functools.cache
def library() -> ctypes.CDLL:
    """Return the loaded core; an OSError where it is missing."""
    loaded = ctypes.CDLL(str(PATH))
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


def best_instructions() -> str:
    """Return the best set of instructions that the processor has and the core knows."""
    return INSTRUCTIONS[library().nae_best_instructions()]


def is_here() -> bool:
    """Return whether the core can be used."""
    return not reason()


@functools.cache
def reason() -> str:
    """Return why the core cannot be used; an empty text if it can."""
    if not PATH.exists():
        return f"the native core is not built; {_BUILD} builds it where there is a C++ compiler"
    try:
        found = library().nae_abi_version()
    except (OSError, AttributeError) as error:
        return f"the native core cannot be loaded ({error}); {_BUILD} builds it again"
    return "" if found == _ABI_VERSION else f"the native core is that of another version; {_BUILD} builds it again"
