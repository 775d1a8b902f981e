stream = torch.cuda.Stream()
NAMES = {"hip": "HIP"}
