"""Random models with control flow, in one room: graphs with every port role (``models``), programs of the builder whose numbers are exact
(``programs``), and smooth ones whose gradients are checked (``walks``)."""
