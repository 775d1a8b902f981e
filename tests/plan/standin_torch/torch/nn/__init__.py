"""Networks are defined, but never instantiated."""


class Module:
    pass
