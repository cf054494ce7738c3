"""Networks: extractors, networks on (x, y, e), and models of one shape that are trained side by side."""
