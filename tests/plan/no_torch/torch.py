"""A PyTorch that is not installed, whatever this machine has."""
raise ModuleNotFoundError("No module named 'torch'", name="torch")
