"""What tables hold at slots that no row trains, such as *unseen*: the mean of those that rows do train.

While a network is trained, rows for validation may hold what no training row does. Each engine judges them by padded
tables that it fills in the same way. The finished model has the tables of its schema, which also knows what a slot
stands for; :func:`fill_table` fills these.
"""

import numpy as np

from nae._typing import Array
from nae.encoding import Schema

__all__ = ["fill_table"]


def fill_table(table: Array, schema: Schema, slot_weight: Array, *, is_warm: bool = False) -> Array:
    """Fill *unseen* in place, and *missing* where none was seen, with the weighted mean of the known values.

    If ``is_warm``, an earlier fit may have learned values that these rows do not hold; those count alike.
    """
    for i, feature in enumerate(schema.features):
        own = table[schema.slots(i)]  # a view
        known = slot_weight[schema.slots(i)][: feature.n_values]
        if is_warm and known.sum() == 0 and not feature.is_constant:
            known = np.ones(feature.n_values)
        if known.sum() > 0:
            own[-1] = np.tensordot(known / known.sum(), own[: feature.n_values], axes=1)
        else:  # nothing but missing values
            own[:] = own[-2]
        if not feature.has_missing:
            own[-2] = own[-1]
    return table
