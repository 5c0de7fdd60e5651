"""Random models with control flow, in one room: graphs with every port role (``models``), programs
of the builder whose numbers are exact (``programs``), smooth ones whose gradients are checked
(``walks``), and small ones that shrink when they fail (``two_numbers``, ``wide_rows``).
"""
