"""Makes importing PyTorch fail, whether or not it is installed."""
raise ModuleNotFoundError("No module named 'torch'", name="torch")
