"""The mathematics of EBER as pure tensors: the paper beside it reads like the code."""
