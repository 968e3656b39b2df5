"""Features on boxes and tensor grids: sums of products of functions of one coordinate each.

- `_grid`: cells, their edges, how a grid grows and coarsens, masses from one grid to another
- `_factors`: the factors of features on the cells, in the form the core wants
- `_separable`: features on a box in Tucker form
- `_tucker`, `_fibres`: the search for that form, on lines along one coordinate at a time

May use reductions. Another way to compress features goes beside `_separable`.
"""
